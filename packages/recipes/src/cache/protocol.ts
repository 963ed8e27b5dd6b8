/** The protocol of one cache entry. Each step is one script call. */

import { type Inbox, UnsupportedError } from "holdfast";
import {
  type Claim,
  call,
  type Grant,
  insist,
  type LockProtocol,
  lockKeys,
  type NamedStore,
  type NotHeld,
  type Session,
} from "holdfast/internal";
import {
  recipesCacheExtend,
  recipesCacheFail,
  recipesCacheFill,
  recipesCacheInvalidate,
  recipesCacheLeave,
  recipesCacheLook,
} from "../generated/cache.js";
import { AGAIN, AT_ONCE } from "./messages.js";

/**
 * The state of an entry.
 *
 * - `fresh`: `text` is the value
 * - `granted`: the caller must load the value; `text` is the stale value, if any
 * - `loading`: another process holds the load for `restMs` more milliseconds; `text` is the stale value, if any
 */
export type CacheReply =
  | { readonly outcome: "fresh"; readonly text: string }
  | { readonly outcome: "granted"; readonly token: number; readonly text: string | undefined }
  | {
      readonly outcome: "loading";
      readonly token: number;
      readonly restMs: number;
      readonly text: string | undefined;
    };

/**
 * How long an entry outlives the lease of its load, in milliseconds. During that time, a late load can still fill the
 * entry, unless another load has begun.
 */
const KEEP_AFTER_MS = 60_000;
/** How long the server grants no new load after a failed one if there is a stale value, in milliseconds. */
const PAUSE_MS = 1_000;

/** The protocol of one cache entry. */
export class CacheProtocol implements LockProtocol {
  readonly kind = "cache";
  readonly name: string;
  readonly key: string;
  readonly exported: undefined;
  readonly #session: Session;
  readonly #caller: NamedStore;
  readonly #channel: string;

  constructor(session: Session, prefix: string, name: string) {
    this.#session = session;
    this.name = name;
    const { lock, base } = lockKeys(prefix, "cache", name);
    this.key = lock;
    this.#channel = `${base}:filled`;
    this.#caller = { store: session.store, name };
  }

  /**
   * Reads the entry, and grants the load to this claim if there is no fresh value and no other load.
   *
   * @throws StoreError
   */
  async read({ owner, leaseMs }: Claim, timeoutMs: number): Promise<CacheReply> {
    const args = { owner, leaseMs, keepMs: leaseMs + KEEP_AFTER_MS };
    const reply = await call(this.#caller, recipesCacheLook, this.#keys, args, timeoutMs);
    const [text] = reply.value;
    switch (reply.outcome) {
      case "fresh":
        return { outcome: "fresh", text: text ?? "" };
      case "granted":
        return { outcome: "granted", token: reply.token, text };
      case "loading":
        return { outcome: "loading", token: reply.token, restMs: reply.restMs, text };
    }
  }

  /**
   * Stores a value.
   *
   * @returns false if the load no longer belongs to this grant
   * @throws StoreError  the value may have been stored
   */
  async fill(
    { claim: { owner }, token }: Grant,
    entry: { readonly text: string; readonly freshMs: number; readonly staleMs: number; readonly message: string },
  ): Promise<boolean> {
    const { text, ...rest } = entry;
    const args = { owner, token, value: text, channel: this.#channel, ...rest };
    const reply = await insist(this.#session, () =>
      call(this.#caller, recipesCacheFill, this.#keys, args, this.#session.commandTimeoutMs),
    );
    return reply.outcome === "filled";
  }

  /**
   * Counts a failed load.
   *
   * @returns whether it was the last allowed attempt
   * @throws StoreError  the failure may have been counted
   */
  async fail({ claim: { owner } }: Grant, attempts: number, over: string): Promise<boolean> {
    const args = { owner, attempts, pauseMs: PAUSE_MS, channel: this.#channel, again: AGAIN, over };
    const reply = await insist(this.#session, () =>
      call(this.#caller, recipesCacheFail, this.#keys, args, this.#session.commandTimeoutMs),
    );
    return reply.outcome === "exhausted";
  }

  /** Releases the load. @returns whether it belonged to `owner` @throws StoreError  it may have been released */
  async giveUp(owner: string, message: string, timeoutMs: number): Promise<boolean> {
    const args = { owner, channel: this.#channel, message };
    const reply = await call(this.#caller, recipesCacheLeave, this.#keys, args, timeoutMs);
    return reply.outcome === "left";
  }

  /**
   * Removes the value and revokes a running load.
   *
   * @throws StoreError  the entry may have been invalidated
   * @throws ClosedError
   */
  async invalidate(): Promise<void> {
    const request = this.#session.newRequestId(this.name);
    const args = { request, keepMs: KEEP_AFTER_MS, channel: this.#channel, message: AT_ONCE };
    await insist(this.#session, () =>
      call(this.#caller, recipesCacheInvalidate, this.#keys, args, this.#session.commandTimeoutMs),
    );
  }

  /** Subscribes to the messages of the entry. @throws StoreError, UnsupportedError */
  listen(onMessage: (message: string) => void): Promise<Inbox> {
    return this.#session.store.inbox(this.#channel, onMessage, this.#session.commandTimeoutMs);
  }

  async extend({ claim: { owner } }: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    const args = { owner, leaseMs, keepMs: leaseMs + KEEP_AFTER_MS };
    const reply = await call(this.#caller, recipesCacheExtend, this.#keys, args, timeoutMs);
    return reply.outcome;
  }

  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    await this.giveUp(owner, AGAIN, timeoutMs);
  }

  async release({ claim: { owner } }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    return (await this.giveUp(owner, AGAIN, timeoutMs)) ? "released" : "claimed";
  }

  acquire(): Promise<never> {
    return this.#unsupported();
  }

  inspect(): Promise<never> {
    return this.#unsupported();
  }

  adopt(): Promise<never> {
    return this.#unsupported();
  }

  forceRelease(): Promise<never> {
    return this.#unsupported();
  }

  get #keys(): { readonly entry: string } {
    return { entry: this.key };
  }

  #unsupported(): Promise<never> {
    return Promise.reject(new UnsupportedError(this.name, "A load cannot move to another process."));
  }
}

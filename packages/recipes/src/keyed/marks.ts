/**
 * The record of applied events of one object. Each read and each write is one script call under the object's lease.
 */

import type { Lease } from "holdfast";
import { call, insist, lockKeys, type NamedStore, type Session } from "holdfast/internal";
import { recipesKeyedCheck, recipesKeyedRecord } from "../generated/keyed.js";
import type { ResolvedKeyed } from "./options.js";

/** Location of the record, and the event to look up or record. */
export interface MarksPlace {
  readonly session: Session;
  readonly prefix: string;
  /** Name of the object's mutex. */
  readonly name: string;
  readonly event: Pick<ResolvedKeyed, "eventId" | "sequence" | "keepMs">;
}

/** Why an event was not applied: it already was, or an event with the higher sequence `lastSequence` was. */
export type KeyedPassed =
  | { readonly outcome: "duplicate" }
  | { readonly outcome: "outdated"; readonly lastSequence: number };

/** Checks and records one event of one object. */
export class Marks {
  readonly #session: Session;
  readonly #caller: NamedStore;
  readonly #keys: { readonly lock: string; readonly fence: string; readonly applied: string; readonly event: string };
  readonly #args: { readonly isNamed: number; readonly sequence: number | "" };
  readonly #keepMs: number;

  constructor({ session, prefix, name, event: { eventId, sequence, keepMs } }: MarksPlace) {
    this.#session = session;
    this.#caller = { store: session.store, name };
    const { lock, base } = lockKeys(prefix, "mutex", name);
    // Same hash tag as the mutex, so that all keys are in the same cluster slot.
    const { base: applied } = lockKeys(prefix, "keyed", name);
    const event = `${applied}:event:${eventId === undefined ? "" : encodeURIComponent(eventId)}`;
    this.#keys = { lock, fence: `${base}:fence`, applied, event };
    this.#args = { isNamed: eventId === undefined ? 0 : 1, sequence: sequence ?? "" };
    this.#keepMs = keepMs;
  }

  /** Returns why the event must not be applied, or undefined if it must be. @throws StoreError */
  async check(): Promise<KeyedPassed | undefined> {
    const reply = await this.#insist((timeoutMs) =>
      call(this.#caller, recipesKeyedCheck, this.#keys, this.#args, timeoutMs),
    );
    switch (reply.outcome) {
      case "new":
        return undefined;
      case "duplicate":
        return { outcome: "duplicate" };
      case "outdated":
        return { outcome: "outdated", lastSequence: Number(reply.last[0]) };
    }
  }

  /**
   * Records the event as applied.
   *
   * @returns false if the object no longer belongs to that lease; nothing was recorded
   * @throws StoreError  the event may or may not be recorded
   */
  async record({ owner, token }: Lease): Promise<boolean> {
    const args = { ...this.#args, owner, token, keepMs: this.#keepMs };
    const reply = await this.#insist((timeoutMs) =>
      call(this.#caller, recipesKeyedRecord, this.#keys, args, timeoutMs),
    );
    return reply.outcome === "recorded";
  }

  #insist<Answer>(send: (timeoutMs: number) => Promise<Answer>): Promise<Answer> {
    return insist(this.#session, () => send(this.#session.commandTimeoutMs));
  }
}

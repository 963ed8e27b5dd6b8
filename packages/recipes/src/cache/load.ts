/** Runs a caller's loader once, and stores or reports its result. */
import { ClosedError } from "holdfast";
import { type Hold, Lease, type Session, type Settled } from "holdfast/internal";
import { encodeFailure } from "../failure.js";
import { type Loader, LoadLease } from "./lease.js";
import { AGAIN, ALONE, failed, filled } from "./messages.js";
import type { ResolvedCache } from "./options.js";
import type { CacheProtocol } from "./protocol.js";

/** The entry to load, and the options of its cache. */
export interface LoadPlace<Value> {
  readonly session: Session;
  readonly protocol: CacheProtocol;
  readonly options: ResolvedCache<Value>;
}

/** How a loader ended. */
export type LoadOutcome<Value> =
  | { readonly ok: true; readonly value: Value; readonly isNegative: boolean }
  | { readonly ok: false; readonly error: unknown };

/**
 * Maximum size of an error that is published with its properties, in bytes. Limited because all waiting processes
 * receive the error.
 */
const FAILURE_BYTES_MAX = 4_096;

/** One run of a loader. */
export class Load<Value> {
  /** How the loader ended. Never rejects. */
  readonly outcome: Promise<LoadOutcome<Value>>;
  readonly #place: LoadPlace<Value>;
  readonly #hold: Hold | undefined;
  readonly #lease: Lease | undefined;
  readonly #controller = new AbortController();

  /** Calls the loader. @param hold  hold of the entry; undefined to load without a lease */
  constructor(place: LoadPlace<Value>, hold: Hold | undefined, load: Loader<Value>) {
    this.#place = place;
    this.#hold = hold;
    this.#lease = hold === undefined ? undefined : new Lease(hold);
    hold?.onLost((reason) => {
      if (reason === "closing" || reason === "closed") this.abort(new ClosedError(place.protocol.name));
    });
    this.outcome = this.#run(load);
  }

  /** Whether the value is loaded without a lease. */
  get isAlone(): boolean {
    return this.#hold === undefined;
  }

  /** Asks the loader to stop. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /**
   * Stores the value. If it cannot be encoded or is too large, notifies the waiting processes, which then load it
   * themselves.
   *
   * @returns false if another load took over, if the entry was invalidated, or if the server did not reply
   */
  async keep(value: Value, isNegative: boolean): Promise<boolean> {
    const hold = this.#hold;
    if (hold === undefined) return true;
    const { protocol, options, session } = this.#place;
    const { freshMs, staleMs, negativeMs, jitter } = options;
    const text = this.#encoded(value);
    hold.rest();
    try {
      const softMs = Math.max(1, Math.round(freshMs * (1 - jitter * session.runtime.random())));
      const lives = isNegative ? { freshMs: negativeMs, staleMs: 0 } : { freshMs: softMs, staleMs };
      const wasOurs =
        text === undefined
          ? await protocol.giveUp(hold.owner, ALONE, session.commandTimeoutMs)
          : await protocol.fill(hold.grant, { text, ...lives, message: filled(hold.token, text) });
      if (!wasOurs) {
        hold.lose(hold.validForMs() > 0 ? "server-lost" : "expired");
        return false;
      }
    } catch {
      this.#unanswered(hold);
      return false;
    }
    this.#end(hold, "released");
    return true;
  }

  /** Reports the failure to the waiting processes. @returns whether it was the last attempt */
  async fail(error: unknown): Promise<boolean> {
    const hold = this.#hold;
    if (hold === undefined) return false;
    const { attemptsMax } = this.#place.options;
    hold.rest();
    try {
      const text = encodeFailure(error, FAILURE_BYTES_MAX);
      const isLast = await this.#place.protocol.fail(hold.grant, attemptsMax, failed(hold.token, text));
      this.#end(hold, "released");
      return isLast;
    } catch {
      this.#unanswered(hold);
      return false;
    }
  }

  /** Releases the load without counting a failure. */
  async giveUp(): Promise<void> {
    const hold = this.#hold;
    if (hold === undefined) return;
    hold.rest();
    const { protocol, session } = this.#place;
    const given = protocol.giveUp(hold.owner, AGAIN, session.commandTimeoutMs);
    const how = await given.then(() => "released" as const).catch(() => "unknown" as const);
    this.#end(hold, how);
  }

  async #run(load: Loader<Value>): Promise<LoadOutcome<Value>> {
    try {
      const value = await load(new LoadLease(this.#controller.signal, this.#lease));
      return { ok: true, value, isNegative: this.#place.options.isNegative(value) };
    } catch (error) {
      return { ok: false, error };
    }
  }

  /** Returns undefined if the value cannot be encoded or is too large. */
  #encoded(value: Value): string | undefined {
    const { codec, valueBytesMax } = this.#place.options;
    try {
      const text = codec.encode(value);
      return Buffer.byteLength(text) <= valueBytesMax ? text : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * Tries to release the load, so that other processes need not wait for the lease to expire. Callers here do not wait
   * for the reply.
   */
  #unanswered(hold: Hold): void {
    const { protocol, session } = this.#place;
    void protocol.giveUp(hold.owner, AGAIN, session.commandTimeoutMs).catch(() => {});
    this.#end(hold, "unknown");
  }

  #end(hold: Hold, how: Settled): void {
    this.#lease?.end("released");
    hold.end(how);
  }
}

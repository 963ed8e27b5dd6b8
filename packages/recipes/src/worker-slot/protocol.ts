/**
 * The semaphore protocol for worker numbers. The server keeps each lease longer than the holder assumes, and records
 * for the next holder when the use of the number ends.
 */

import { type Claim, call, type Grant, type LockProtocol, type NotHeld, type Session } from "holdfast/internal";
import { recipesWorkerSlotBefore, recipesWorkerSlotEnd, recipesWorkerSlotKeep } from "../generated/worker-slot.js";

/** Fraction of a release's timeout that recording the end of the use may take. */
const NOTE_SHARE = 1 / 4;

/** The use of one worker number. Create one for each call of `workerSlot`. */
export class SlotUse {
  readonly #session: Session;
  readonly #base: LockProtocol;
  readonly #restMs: number;
  readonly #ends: string;
  #grant: Grant | undefined;
  /** The latest time of the local clock, in milliseconds since 1970, at which the number was known to be in use. */
  #latestMs = 0;

  /**
   * @param base    the semaphore's protocol
   * @param ends    key of the hash that records when the use of each number ends
   * @param restMs  how much longer the lease lasts on the server than the holder assumes, in milliseconds
   */
  constructor(session: Session, base: LockProtocol, ends: string, restMs: number) {
    this.#session = session;
    this.#base = base;
    this.#ends = ends;
    this.#restMs = restMs;
  }

  /** Records that the number is in use now, because the caller may be reading the clock. */
  inUse(): void {
    const nowMs = this.#session.runtime.wallMs();
    if (nowMs > this.#latestMs) this.#latestMs = nowMs;
  }

  /** The protocol that the lease uses instead of the semaphore's. */
  get protocol(): LockProtocol {
    const base = this.#base;
    const restMs = this.#restMs;
    const { reclaim } = base;
    return {
      ...base,
      // Export is disabled, because an adopted lease would have no rest time.
      exported: undefined,
      extend: (grant, leaseMs, timeoutMs) => this.#keep(grant, leaseMs, timeoutMs),
      ...(reclaim && {
        reclaim: async (grant, leaseMs, timeoutMs) => {
          const outcome = await reclaim(grant, leaseMs + restMs, timeoutMs);
          // The failover may also have lost the recorded end. If the hold has just begun, this also sets `#grant`.
          if (outcome === "reclaimed") await this.#keep(grant, leaseMs, timeoutMs);
          return outcome;
        },
      }),
      release: async (grant, timeoutMs) => base.release(grant, await this.#end(grant.claim, timeoutMs)),
      leave: async (claim, timeoutMs) => base.leave(claim, await this.#end(claim, timeoutMs)),
    };
  }

  async #keep(grant: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    const { owner } = grant.claim;
    const { token } = grant;
    const state = this.#base.key;
    const keys = {
      state,
      fence: `${state}:fence`,
      holders: `${state}:holders`,
      slots: `${state}:slots`,
      ends: this.#ends,
    };
    const untilMs = Math.ceil(this.#session.runtime.wallMs() + leaseMs);
    const args = { owner, token, leaseMs: leaseMs + this.#restMs, untilMs };
    const reply = await call(this.#caller, recipesWorkerSlotKeep, keys, args, timeoutMs);
    if (reply.outcome !== "extended") return reply.outcome;
    this.#grant = grant;
    return "extended";
  }

  /**
   * Returns the last time at which the previous holder may have used the number, in milliseconds since 1970 by that
   * holder's clock; 0 if no previous holder is known.
   *
   * @throws StoreError
   */
  async beforeMs(): Promise<number> {
    const { number, token } = this.#note();
    const reply = await call(
      this.#caller,
      recipesWorkerSlotBefore,
      { ends: this.#ends },
      { number, token },
      this.#session.commandTimeoutMs,
    );
    return reply.outcome === "known" ? reply.beforeMs : 0;
  }

  /**
   * Records that the number is not used from now on. The release must wait for the reply, because the server may run
   * the release first if it has to load the script of this call. Meanwhile, the next holder would read the old, later
   * end.
   *
   * @returns the rest of `timeoutMs`. Never rejects: if recording fails, the next holder only begins later
   */
  async #end({ owner }: Claim, timeoutMs: number): Promise<number> {
    if (this.#grant?.claim.owner !== owner) return timeoutMs;
    // A holder that checks only its signal has never called `inUse`, so record the use here.
    this.inUse();
    const args = { ...this.#note(), untilMs: Math.ceil(this.#latestMs) };
    const noteMs = timeoutMs * NOTE_SHARE;
    await call(this.#caller, recipesWorkerSlotEnd, { ends: this.#ends }, args, noteMs).catch(() => {});
    return timeoutMs - noteMs;
  }

  #note(): { readonly number: number; readonly token: number } {
    return { number: this.#grant?.slots[0] ?? 0, token: this.#grant?.token ?? 0 };
  }

  get #caller(): { readonly store: Session["store"]; readonly name: string } {
    return { store: this.#session.store, name: this.#base.name };
  }
}

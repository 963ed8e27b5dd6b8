/** The protocol of a semaphore for the number of one worker: its lease lasts longer on the server, and its end is noted. */

import {
  recipesWorkerSlotBefore,
  recipesWorkerSlotEnd,
  recipesWorkerSlotKeep,
} from "../../generated/recipes-scripts.js";
import { type Claim, call, type Grant, type LockProtocol, type NotHeld, type Session } from "../../internal.js";

/** So much of the time for an answer is for the note, when a number is given back. */
const NOTE_SHARE = 1 / 4;

/** See the file header. One for each number that somebody asks for. */
export class SlotUse {
  readonly #session: Session;
  readonly #base: LockProtocol;
  readonly #restMs: number;
  readonly #ends: string;
  #grant: Grant | undefined;
  /** The latest time that its holder can have read while it was held. */
  #latestMs = 0;

  /**
   * @param base    of the semaphore
   * @param ends    key of the notes
   * @param restMs  how much longer the lease is on the server
   */
  constructor(session: Session, base: LockProtocol, ends: string, restMs: number) {
    this.#session = session;
    this.#base = base;
    this.#ends = ends;
    this.#restMs = restMs;
  }

  /** It is held, and whoever asked may have read the clock. */
  inUse(): void {
    const nowMs = this.#session.runtime.wallMs();
    if (nowMs > this.#latestMs) this.#latestMs = nowMs;
  }

  /** What the lease uses in place of the protocol of the semaphore. */
  get protocol(): LockProtocol {
    const base = this.#base;
    const restMs = this.#restMs;
    const { reclaim } = base;
    return {
      ...base,
      // What is adopted elsewhere would not rest.
      exported: undefined,
      extend: (grant, leaseMs, timeoutMs) => this.#keep(grant, leaseMs, timeoutMs),
      ...(reclaim && {
        reclaim: async (grant, leaseMs, timeoutMs) => {
          const outcome = await reclaim(grant, leaseMs + restMs, timeoutMs);
          // What was noted is lost with it, and whoever has just begun does not know its own number before.
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
   * Until when the holder before may have used the number, by its own clock, in ms since 1970; 0 if nothing is known of one.
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
   * Notes that it is in use no longer than until now. Awaited before it is given back, since to be sent first is not to come first:
   * this script is loaded on a server that does not know it yet, and meanwhile whoever waits would begin after the old note.
   *
   * @returns what is left of the time. Never rejects: without the note the next one begins later, and no harm is done
   */
  async #end({ owner }: Claim, timeoutMs: number): Promise<number> {
    if (this.#grant?.claim.owner !== owner) return timeoutMs;
    // Who is late may have heeded its signal alone, and then nobody has told until when.
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

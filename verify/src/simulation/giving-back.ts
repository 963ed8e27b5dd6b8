/** Tracks which claims were released, by the requests sent and by what the server executed. */

import { claimOf } from "../history/lease-names.js";
import type { Draft } from "./draft.js";
import type { Call } from "./network.js";

const GIVES_BACK = /^(?:mutex|permits)\/(?:release|leave|delete)$|^election\/resign$/;

/** The claims for which a script is sent; empty if none. */
export function ownerOf({ script, args }: Call): string {
  return String(args[script.args.indexOf("owner")] ?? "");
}

/** Tracks releases. */
export class GivingBack {
  /** The number of sent release requests, by owner. */
  readonly #calls = new Map<string, number>();
  /** When the server first released each owner's hold. */
  readonly #doneAtMs = new Map<string, number>();
  /** When each process reconnected its command connection. */
  readonly #cameBack: { readonly process: string; readonly atMs: number }[] = [];

  /** Counts a request. @returns whether it is the first one that releases its owner */
  isFirst(call: Call): boolean {
    if (!GIVES_BACK.test(call.script.name)) return false;
    const owner = ownerOf(call);
    const calls = (this.#calls.get(owner) ?? 0) + 1;
    this.#calls.set(owner, calls);
    return calls === 1;
  }

  /** Whether a request to release the owner was sent. */
  wasSent(owner: string): boolean {
    return this.#calls.has(owner);
  }

  /** Records that the server has executed a request. */
  ran(call: Call, outcome: string | undefined, atMs: number): void {
    if (outcome !== "released" || !GIVES_BACK.test(call.script.name)) return;
    const owner = ownerOf(call);
    if (!this.#doneAtMs.has(owner)) this.#doneAtMs.set(owner, atMs);
  }

  /** Records that the process resends its unanswered requests on a new connection. */
  cameBack(process: string, atMs: number): void {
    this.#cameBack.push({ process, atMs });
  }

  /**
   * Whether a release that was reported as done may not have happened. If a caller retried after a lost reply, and the
   * reply to the retry says that it no longer holds, it may have released or lost the lock. The same is true if its
   * connection was replaced, because the client does not say what was sent on the old one.
   */
  isDoubtful(draft: Draft): boolean {
    const { verb, outcome, process, callMs, returnMs } = draft;
    const owner = claimOf(draft);
    if (verb !== "release" || outcome !== "ok") return false;
    // A later execution belongs to another grant of the same claim, made for a late request.
    if ((this.#doneAtMs.get(owner) ?? Infinity) <= returnMs) return false;
    const isBackSince = this.#cameBack.some(
      (back) => back.process === process && back.atMs >= callMs && back.atMs <= returnMs,
    );
    return isBackSince || (this.#calls.get(owner) ?? 0) > 1;
  }
}

/** Which claims were given back, by what was sent and by what the server did. */

import { claimOf } from "../history/lease-names.js";
import type { Draft } from "./draft.js";
import type { Call } from "./network.js";

const GIVES_BACK = /^(?:mutex|permits)\/(?:release|leave)$|^election\/resign$/;

/** The claims for which a script is sent; empty if there are none. */
export function ownerOf({ script, args }: Call): string {
  return String(args[script.args.indexOf("owner")] ?? "");
}

/** See the file header. */
export class GivingBack {
  /** How often each owner was given back, by what was sent. */
  readonly #calls = new Map<string, number>();
  /** Who was so by what the server did, and when first. */
  readonly #doneAtMs = new Map<string, number>();
  /** When which process had another connection for its scripts. */
  readonly #cameBack: { readonly process: string; readonly atMs: number }[] = [];

  /** Counts what is sent. @returns whether this gives its owner back, and nothing did so before */
  isFirst(call: Call): boolean {
    if (!GIVES_BACK.test(call.script.name)) return false;
    const owner = ownerOf(call);
    const calls = (this.#calls.get(owner) ?? 0) + 1;
    this.#calls.set(owner, calls);
    return calls === 1;
  }

  /** Whether a request that gives it back was sent. */
  wasSent(owner: string): boolean {
    return this.#calls.has(owner);
  }

  /** The server has carried it out. */
  ran(call: Call, outcome: string | undefined, atMs: number): void {
    if (outcome !== "released" || !GIVES_BACK.test(call.script.name)) return;
    const owner = ownerOf(call);
    if (!this.#doneAtMs.has(owner)) this.#doneAtMs.set(owner, atMs);
  }

  /** The process sends its unanswered requests again, over another connection. */
  cameBack(process: string, atMs: number): void {
    this.#cameBack.push({ process, atMs });
  }

  /**
   * Whether a release that is said to be done may not have been: who asked again since an answer was lost, and hears that
   * it holds no longer, may have given it back or lost it; as may who had another connection meanwhile, since what was
   * sent over the one before, its client does not say.
   */
  isDoubtful(draft: Draft): boolean {
    const { verb, outcome, process, callMs, returnMs } = draft;
    const owner = claimOf(draft);
    if (verb !== "release" || outcome !== "ok") return false;
    // What is done later is another grant of the same claim, made to a request that came late.
    if ((this.#doneAtMs.get(owner) ?? Infinity) <= returnMs) return false;
    const isBackSince = this.#cameBack.some(
      (back) => back.process === process && back.atMs >= callMs && back.atMs <= returnMs,
    );
    return isBackSince || (this.#calls.get(owner) ?? 0) > 1;
  }
}

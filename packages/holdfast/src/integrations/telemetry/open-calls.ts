/** Calls of acquire that have begun, and not ended: which of them wait. */
import type { AcquireEvent, WaitEvent } from "../../index.js";

/** What somebody remembers of each of them. */
export class OpenCalls<Kept> {
  readonly #onWait: (kept: Kept) => void;
  readonly #calls = new Map<object, { readonly kept: Kept; readonly owner: string; isWaiting: boolean }>();
  /** Several wait behind one claim. */
  readonly #byOwner = new Map<string, Set<object>>();

  /** @param onWait  told once of each call that waits */
  constructor(onWait: (kept: Kept) => void) {
    this.#onWait = onWait;
  }

  /** A call has begun. */
  begin({ call, owner }: AcquireEvent, kept: Kept): void {
    this.#calls.set(call, { kept, owner, isWaiting: false });
    const sharing = this.#byOwner.get(owner);
    if (sharing === undefined) this.#byOwner.set(owner, new Set([call]));
    else sharing.add(call);
  }

  /** It waits; or all do that stand behind that claim. */
  wait({ call, owner }: WaitEvent): void {
    for (const each of call === undefined ? (this.#byOwner.get(owner) ?? []) : [call]) {
      const open = this.#calls.get(each);
      if (open === undefined || open.isWaiting) continue;
      open.isWaiting = true;
      this.#onWait(open.kept);
    }
  }

  /** It has ended. @returns undefined if it had begun before somebody listened, or was never told of */
  end(call: object): { readonly kept: Kept; readonly isWaiting: boolean } | undefined {
    const open = this.#calls.get(call);
    if (open === undefined) return undefined;
    this.#calls.delete(call);
    const sharing = this.#byOwner.get(open.owner);
    sharing?.delete(call);
    if (sharing?.size === 0) this.#byOwner.delete(open.owner);
    return open;
  }

  /** All that have not ended. */
  *open(): Generator<{ readonly kept: Kept; readonly isWaiting: boolean }> {
    yield* this.#calls.values();
  }
}

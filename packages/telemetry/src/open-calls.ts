/** Tracks the acquire calls that have begun but not ended, and which of them are waiting. */
import type { AcquireEvent, WaitEvent } from "holdfast";

/** Tracks open acquire calls, and keeps a value for each. */
export class OpenCalls<Value> {
  readonly #onWait: (value: Value) => void;
  readonly #calls = new Map<object, { readonly value: Value; readonly owner: string; isWaiting: boolean }>();
  /** Open calls by the owner of their claim. Several calls can wait behind one claim. */
  readonly #byOwner = new Map<string, Set<object>>();

  /** @param onWait  called once for each call that waits */
  constructor(onWait: (value: Value) => void) {
    this.#onWait = onWait;
  }

  /** Records the start of a call. @param value  the value to keep until the call ends */
  begin({ call, owner }: AcquireEvent, value: Value): void {
    this.#calls.set(call, { value, owner, isWaiting: false });
    const sharing = this.#byOwner.get(owner);
    if (sharing === undefined) this.#byOwner.set(owner, new Set([call]));
    else sharing.add(call);
  }

  /** Marks the call of the event as waiting. If the event names no call, marks all open calls behind its claim. */
  wait({ call, owner }: WaitEvent): void {
    for (const each of call === undefined ? (this.#byOwner.get(owner) ?? []) : [call]) {
      const open = this.#calls.get(each);
      if (open === undefined || open.isWaiting) continue;
      open.isWaiting = true;
      this.#onWait(open.value);
    }
  }

  /**
   * Records the end of a call.
   *
   * @returns the value of the call; undefined if its start was not seen
   */
  end(call: object): { readonly value: Value; readonly isWaiting: boolean } | undefined {
    const open = this.#calls.get(call);
    if (open === undefined) return undefined;
    this.#calls.delete(call);
    const sharing = this.#byOwner.get(open.owner);
    sharing?.delete(call);
    if (sharing?.size === 0) this.#byOwner.delete(open.owner);
    return open;
  }

  /** All calls that have not ended. */
  *open(): Generator<{ readonly value: Value; readonly isWaiting: boolean }> {
    yield* this.#calls.values();
  }
}

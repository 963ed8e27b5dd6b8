/** A fence in this process, for what can compare no tokens itself: a file, a device, a service that this process alone speaks to. */
import { checkResource, show } from "../../internal.js";
import { checkFencing, type FencingLease, type Mark, refuseBy } from "./fencing.js";

/** Remembers of each resource the highest token that it has seen. What it knows ends with the process. */
export interface FenceGuard {
  /**
   * Remembers the token if none higher was seen. What is written must be written before the next `await`, since somebody later may
   * come in it; what takes longer belongs into `run`.
   *
   * @throws StaleTokenError   a later holder has been here; do not write
   * @throws ForeignLockError  the resource belongs to another lock; do not write
   * @throws TypeError, RangeError  a wrong argument
   */
  check(resource: string, lease: FencingLease): void;

  /**
   * Checks, and then writes, while nobody else does through this method: one at a time for each resource, in the order of the calls. A token counts
   * from the call on, so whoever is late is refused even while it waits for its turn.
   *
   * @returns what `write` returned
   * @throws StaleTokenError, ForeignLockError, TypeError, RangeError  as `check`; `write` was not called
   * @throws what `write` threw
   */
  run<Value>(resource: string, lease: FencingLease, write: () => Value | Promise<Value>): Promise<Value>;

  /** Forgets a resource that is no more; otherwise each one that was ever named is kept. */
  forget(resource: string): void;
}

/** A guard that has seen nothing yet. All writes to a resource have to go through one and the same. */
export function fenceGuard(): FenceGuard {
  return new Guard();
}

class Guard implements FenceGuard {
  readonly #marks = new Map<string, Mark>();
  /** The end of the last write of each resource that is being written. */
  readonly #writes = new Map<string, Promise<void>>();

  check(resource: string, lease: FencingLease): void {
    const fencing = checkFencing(lease);
    const mark = this.#marks.get(checkResource(resource));
    if (mark !== undefined) refuseBy(mark, resource, fencing);
    this.#marks.set(resource, { lock: fencing.name, token: fencing.token });
  }

  async run<Value>(resource: string, lease: FencingLease, write: () => Value | Promise<Value>): Promise<Value> {
    if (typeof write !== "function") throw new TypeError(`write must be a function; got ${show(write)}`);
    this.check(resource, lease);
    const before = this.#writes.get(resource);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#writes.set(resource, ended);
    try {
      // Where nobody is before it, it begins to write in this very turn: in the next one somebody later may have been let by.
      if (before !== undefined) {
        await before;
        this.check(resource, lease);
      }
      return await write();
    } finally {
      if (this.#writes.get(resource) === ended) this.#writes.delete(resource);
      end();
    }
  }

  forget(resource: string): void {
    this.#marks.delete(checkResource(resource));
  }
}

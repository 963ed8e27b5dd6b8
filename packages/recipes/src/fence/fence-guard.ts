/**
 * A fence in this process, for resources that cannot compare tokens and that only this process uses, such as a file or
 * a device.
 */
import { checkResource, show } from "holdfast/internal";
import { checkFencing, type FencingLease, type Mark, refuseBy } from "./fencing.js";

/** Remembers the highest token seen for each resource, until the process ends. */
export interface FenceGuard {
  /**
   * Checks the lease and remembers its token. Finish the write before the next `await`, because a later holder may pass
   * the check while you wait. Use `run` for a write that takes longer.
   *
   * @throws StaleTokenError   a later holder has already used the resource; do not write
   * @throws ForeignLockError  the resource belongs to another lock; do not write
   * @throws TypeError, RangeError  an invalid argument
   */
  check(resource: string, lease: FencingLease): void;

  /**
   * Checks the lease, then runs `write`. Runs one write per resource at a time, in the order of the calls. A token
   * counts from the moment of the call, so a call that waits for its turn is refused if a later holder calls meanwhile.
   *
   * @returns the value that `write` returned
   * @throws StaleTokenError, ForeignLockError, TypeError, RangeError  as `check`; `write` was not called
   * @throws the error that `write` threw
   */
  run<Value>(resource: string, lease: FencingLease, write: () => Value | Promise<Value>): Promise<Value>;

  /** Forgets a resource, to free its memory. Call it only for a resource that no longer exists. */
  forget(resource: string): void;
}

/**
 * Creates a guard that has seen no tokens. All writes to a resource must use the same guard.
 *
 * @example
 * const guard = fenceGuard();
 * await holdfast.mutex("printer").run(async (lease) => {
 *   await guard.run("printer", lease, () => print(page)); // rejects if a later holder has printed
 * });
 */
export function fenceGuard(): FenceGuard {
  return new Guard();
}

class Guard implements FenceGuard {
  readonly #marks = new Map<string, Mark>();
  /** For each resource that is being written: settles when the last write in its queue has ended. */
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
      // Without an earlier write, this one begins in the same turn as its check. After a wait, check again, because a
      // later holder may have passed the check in the meantime.
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

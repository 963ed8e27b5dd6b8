import type { Timed } from "./model.js";

/** A call or a return in the list from which the search removes operations and to which it restores them. */
export interface Mark {
  /** The index of the operation. */
  readonly operation: number;
  readonly isCall: boolean;
  readonly atMs: number;
  previous: Mark | null;
  next: Mark | null;
  /** For a call: its return. */
  match: Mark | null;
}

/** An operation that never returned. */
export interface Open {
  /** The index of the operation. */
  readonly operation: number;
  readonly atMs: number;
}

/** Calls and returns in time order, as a linked list; operations that never returned are stored separately. */
export class Timeline {
  /** A sentinel before the first mark. */
  readonly head: Mark = markOf(-1, false, Number.NEGATIVE_INFINITY);
  /** Open operations, in the order of their calls. */
  readonly open: readonly Open[];
  /** The number of returns in the list. At zero, the order is complete. */
  returns = 0;

  constructor(operations: readonly Timed<unknown>[]) {
    const marks: Mark[] = [];
    const open: Open[] = [];
    operations.forEach(({ callMs, returnMs }, operation) => {
      if (returnMs === Number.POSITIVE_INFINITY) {
        open.push({ operation, atMs: callMs });
        return;
      }
      const call = markOf(operation, true, callMs);
      call.match = markOf(operation, false, returnMs);
      marks.push(call, call.match);
      this.returns += 1;
    });
    this.open = open.sort((a, b) => a.atMs - b.atMs);
    // At equal times, calls come first: clocks have limited resolution, so the return may have been later than the
    // call.
    marks.sort((a, b) => (a.atMs === b.atMs ? Number(b.isCall) - Number(a.isCall) : a.atMs - b.atMs));
    let last = this.head;
    for (const mark of marks) {
      last.next = mark;
      mark.previous = last;
      last = mark;
    }
  }

  /** Removes the operation of this call. */
  lift(call: Mark): void {
    unlink(call);
    if (call.match !== null) unlink(call.match);
    this.returns -= 1;
  }

  /** Restores the operation that was removed last. */
  unlift(call: Mark): void {
    if (call.match !== null) relink(call.match);
    relink(call);
    this.returns += 1;
  }
}

function markOf(operation: number, isCall: boolean, atMs: number): Mark {
  return { operation, isCall, atMs, previous: null, next: null, match: null };
}

function unlink(mark: Mark): void {
  if (mark.previous !== null) mark.previous.next = mark.next;
  if (mark.next !== null) mark.next.previous = mark.previous;
}

/** Restores a removed mark between its old neighbors. This works only in reverse order of removal. */
function relink(mark: Mark): void {
  if (mark.previous !== null) mark.previous.next = mark;
  if (mark.next !== null) mark.next.previous = mark;
}

import type { Timed } from "./model.js";

/** A call or a return in the list that the search takes operations out of and puts them back into. */
export interface Mark {
  /** Index of the operation. */
  readonly operation: number;
  readonly isCall: boolean;
  readonly atMs: number;
  previous: Mark | null;
  next: Mark | null;
  /** Of a call: its return. */
  match: Mark | null;
}

/** An operation that never returned. */
export interface Open {
  /** Index of the operation. */
  readonly operation: number;
  readonly atMs: number;
}

/** Calls and returns in the order of time, as a linked list; what never returned stands apart. */
export class Timeline {
  /** Stands before the first mark. */
  readonly head: Mark = markOf(-1, false, Number.NEGATIVE_INFINITY);
  /** In the order of their calls. */
  readonly open: readonly Open[];
  /** Returns still in the list. Without any the order is complete. */
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
    // Clocks have a limited resolution: an operation that returns at the instant of another call may have returned after it.
    marks.sort((a, b) => (a.atMs === b.atMs ? Number(b.isCall) - Number(a.isCall) : a.atMs - b.atMs));
    let last = this.head;
    for (const mark of marks) {
      last.next = mark;
      mark.previous = last;
      last = mark;
    }
  }

  /** Takes the operation of this call out. */
  lift(call: Mark): void {
    unlink(call);
    if (call.match !== null) unlink(call.match);
    this.returns -= 1;
  }

  /** Puts the operation that was removed last back in its place. */
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

/** A mark out of the list still knows where it was, which holds as long as they come back in reverse order. */
function relink(mark: Mark): void {
  if (mark.previous !== null) mark.previous.next = mark;
  if (mark.next !== null) mark.next.previous = mark;
}

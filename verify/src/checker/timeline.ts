import type { Timed } from "./model.js";

/** A call or a return in the list that the search takes operations out of and puts them back into. */
export interface Mark {
  /** Index of the operation. */
  readonly operation: number;
  readonly isCall: boolean;
  previous: Mark | null;
  next: Mark | null;
  /** Of a call: its return; null if the outcome is unknown. */
  match: Mark | null;
}

/** Calls and returns in the order of time, as a linked list. */
export class Timeline {
  /** Stands before the first mark. */
  readonly head: Mark = { operation: -1, isCall: false, previous: null, next: null, match: null };
  /** Returns still in the list. Without any the order is complete: what is left is of unknown outcome. */
  returns = 0;

  constructor(operations: readonly Timed<unknown>[]) {
    const marks: { readonly mark: Mark; readonly atMs: number }[] = [];
    operations.forEach(({ callMs, returnMs }, operation) => {
      const call: Mark = { operation, isCall: true, previous: null, next: null, match: null };
      marks.push({ mark: call, atMs: callMs });
      if (returnMs === Number.POSITIVE_INFINITY) return;
      call.match = { operation, isCall: false, previous: null, next: null, match: null };
      marks.push({ mark: call.match, atMs: returnMs });
      this.returns += 1;
    });
    // A clock has grains: what returns in the grain in which another is called may have been after it.
    marks.sort((a, b) => (a.atMs === b.atMs ? Number(b.mark.isCall) - Number(a.mark.isCall) : a.atMs - b.atMs));
    let last = this.head;
    for (const { mark } of marks) {
      last.next = mark;
      mark.previous = last;
      last = mark;
    }
  }

  /** Takes the operation of this call out. */
  lift(call: Mark): void {
    unlink(call);
    if (call.match === null) return;
    unlink(call.match);
    this.returns -= 1;
  }

  /** Puts the operation taken out last back where it was. */
  unlift(call: Mark): void {
    if (call.match !== null) {
      relink(call.match);
      this.returns += 1;
    }
    relink(call);
  }
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

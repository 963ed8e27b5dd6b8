import { LockError } from "../../index.js";
import { quote } from "../../internal.js";

/**
 * The request id belongs to another take or put of this counter, so it cannot be told whether this one was done before. Nothing was
 * counted; give each request an id of its own.
 */
export class CounterRequestError extends LockError {
  override readonly name: string = "CounterRequestError";

  readonly code = "ERR_LOCK_COUNTER_REQUEST";
  readonly requestId: string;
  /** What the request asked for when it came first: negative for a take. */
  readonly first: number;

  constructor(counter: string, facts: { readonly requestId: string; readonly change: number; readonly first: number }) {
    const { requestId, change, first } = facts;
    super(
      counter,
      `${quote(counter)} was not changed: the request ${quote(requestId)} came to ${described(first)} before, and now to ${described(change)}; give each request an id of its own.`,
    );
    this.requestId = requestId;
    this.first = first;
  }
}

function described(change: number): string {
  return change < 0 ? `take ${-change}` : `put ${change}`;
}

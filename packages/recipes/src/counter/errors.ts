import { LockError } from "holdfast";
import { quote } from "holdfast/internal";

/**
 * The request id was already used for a different `take` or `put` of this counter. The count was not changed. Give
 * each request its own id.
 */
export class CounterRequestError extends LockError {
  override readonly name: string = "CounterRequestError";

  readonly code = "ERR_LOCK_COUNTER_REQUEST";
  /** The id that was used twice. */
  readonly requestId: string;
  /** Change that the first request with this id asked for; negative for a take. */
  readonly first: number;

  constructor(counter: string, facts: { readonly requestId: string; readonly change: number; readonly first: number }) {
    const { requestId, change, first } = facts;
    super(
      counter,
      `${quote(counter)} was not changed: the request id ${quote(requestId)} was used before to ${described(first)}, and now to ${described(change)}; give each request its own id.`,
    );
    this.requestId = requestId;
    this.first = first;
  }
}

function described(change: number): string {
  return change < 0 ? `take ${-change}` : `put ${change}`;
}

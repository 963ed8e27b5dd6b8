/**
 * A sequential model: what an object may do if operations are applied one at a time.
 *
 * A model is pure: `step` changes nothing and always returns the same result for the same arguments.
 */
export interface Model<State, Value> {
  /** The name for messages and pictures. */
  readonly name: string;
  readonly initial: State;
  /** The states to which the operation may lead; empty if the operation is impossible in this state. */
  step(state: State, value: Value): readonly State[];
  /** A key that is equal for two states if and only if they behave the same from then on. */
  key(state: State): string;
}

/**
 * An operation as the checker sees it.
 *
 * A return of Infinity means that the outcome is unknown: the operation may take effect once at any time after its
 * call, or never.
 */
export interface Timed<Value> {
  readonly callMs: number;
  readonly returnMs: number;
  readonly value: Value;
}

/**
 * What a thing may do when it is asked one operation at a time.
 *
 * A model is pure: `step` changes nothing and answers the same to the same.
 */
export interface Model<State, Value> {
  /** For messages and pictures. */
  readonly name: string;
  readonly initial: State;
  /** The states in which the operation may leave it, none if the operation cannot happen in this state. */
  step(state: State, value: Value): readonly State[];
  /** The same text for two states exactly if nothing that follows can tell them apart. */
  key(state: State): string;
}

/**
 * An operation as the checker sees it.
 *
 * A return of Infinity means that the outcome is unknown: it may take effect once at any time after its call, or never.
 */
export interface Timed<Value> {
  readonly callMs: number;
  readonly returnMs: number;
  readonly value: Value;
}

/** What every answer has. */

/** What every JSON document begins with. */
export interface Stamped {
  readonly v: 1;
  readonly atMs: number;
}

/** The kinds of lock, as the library names them. */
export type KindName = string;

/** The fields that all responses share. */

/** The first fields of every JSON document. */
export interface Stamped {
  readonly v: 1;
  readonly atMs: number;
}

/** The kinds of lock, as the library names them. */
export type KindName = string;

/** The original and the drop-in with the types of the original, so that a test runs on both. */
import * as dropIn from "@holdfast/redlock-compat";
import * as original from "redlock";

/** The exports of both packages, as the original declares them. */
export type Library = typeof original;

export const ORIGINAL: Library = original;
export const DROP_IN: Library = dropIn as unknown as Library;

export const LIBRARIES: readonly (readonly [string, Library])[] = [
  ["redlock 5", ORIGINAL],
  ["the drop-in", DROP_IN],
];

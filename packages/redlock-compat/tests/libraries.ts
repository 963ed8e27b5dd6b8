/** The original and the drop-in, behind the types of the original, so that a test runs on both. */
import * as dropIn from "@holdfast/redlock-compat";
import * as original from "redlock";

/** What both packages export, as the original's declarations have it. */
export type Library = typeof original;

export const ORIGINAL: Library = original;
export const DROP_IN: Library = dropIn as unknown as Library;

export const LIBRARIES: readonly (readonly [string, Library])[] = [
  ["redlock 5", ORIGINAL],
  ["the drop-in", DROP_IN],
];

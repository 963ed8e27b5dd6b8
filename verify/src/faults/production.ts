/** The parts that a run on real servers is put together from. */
import type { Parts } from "./parts.js";
import type { Subject } from "./subject.js";

/** Everything that can be driven; this library first. */
export const SUBJECTS: readonly Omit<Subject, "connect">[] = [];

/** Real servers, real processes, and the judges of all histories. */
export const PRODUCTION: Parts = {
  injection: () => undefined,
  open: () => Promise.reject(new Error("not connected yet")),
  judge: () => ({ breaches: [], checked: {}, unknown: 0, notes: [] }),
};

/** The parts that a run on real servers is put together from. */
import type { Parts } from "./parts.js";

/** Real servers, real processes, and the judges of all histories. */
export const PRODUCTION: Parts = {
  injection: () => undefined,
  open: () => Promise.reject(new Error("not connected yet")),
  judge: () => ({ breaches: [], checked: {}, unknown: 0, notes: [] }),
};

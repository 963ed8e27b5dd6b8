/** The records of a run, as text and as lists, and the leases derived from them. */
export { groupBy, type History, historyOf } from "./history.js";
export { CAPS, type HygieneCaps, OpenOperations, type Width, widths } from "./hygiene.js";
export { readHistory, readRecord, writeHistory, writeRecord } from "./json-lines.js";
export { type Claim, type Lease, leasesOf } from "./leases.js";
export type * from "./records.js";

import type { Measurement } from "./measurement.js";

const NOT_YET = "not yet: there is no lock on a quorum of servers";

/** The lock on five servers; a line of the table that waits for its kind. */
export const redlockQuorum: Measurement = {
  name: "redlock",
  title: () => "Redlock on 5 servers",
  seconds: 0,
  figures: [],
  entries: (adapters) =>
    adapters
      .filter(({ name }) => name === "holdfast")
      .map(({ name, role }) => ({ name, role, prepare: { absent: NOT_YET } })),
  targets: () => [
    {
      what: "Redlock on 5 servers, p50",
      bound: "≤ 1.3 × five parallel raw pairs, ≥ 1.5 × faster than redlock",
      measured: NOT_YET,
      reached: null,
    },
  ],
};

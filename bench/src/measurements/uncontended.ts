import { target } from "../results.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Measurement } from "./measurement.js";
import { oneAtATime, TIMES } from "./one-at-a-time.js";

/** How long one caller takes to acquire and release a free lock: round trips, plus what the library adds. */
export const uncontended: Measurement = {
  name: "uncontended",
  title: () => "uncontended acquire + release, one at a time, server and caller on different cores",
  seconds: 0.1,
  rounds: 4,
  hasOwnCores: true,
  figures: TIMES,

  entries: (adapters) =>
    entriesOf(
      adapters,
      ({ name }, { connection, seconds }) => oneAtATime(name, connection, seconds),
      withoutFairness,
      true,
    ),

  targets: (results, { server }) => [
    target(
      "uncontended acquire + release, p50",
      results.ratio("holdfast", "raw", "p50"),
      { atMost: server.isValkey ? 1.25 : 1.35 },
      "× raw",
    ),
    target(
      "uncontended `run` with the release in the background, p50",
      results.ratio("holdfast/background", "raw", "p50"),
      { atMost: 0.75 },
      "× raw",
    ),
  ],
};

/** The scenarios by row, and which subjects support them. */
import type { Cell } from "../cell.js";
import { blackHole } from "./black-hole.js";
import { isHoldfast } from "./build.js";
import { whyNoLibrary } from "./client-library.js";
import { closedSubscriber, emptySubscription, silentSubscriber } from "./deaf-process.js";
import { frozenQueue } from "./frozen-queue.js";
import type { ClientLibrary } from "./messages.js";
import { stampede } from "./stampede.js";
import type { Scenario } from "./theater.js";
import { vanishedHost } from "./vanished-host.js";

const SCENARIOS: readonly Scenario[] = [
  frozenQueue,
  vanishedHost,
  silentSubscriber,
  closedSubscriber,
  emptySubscription,
  blackHole,
  stampede,
];

/** The scenario of a row. @throws RangeError  unknown row */
export function scenarioOf(row: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.row === row);
  if (found === undefined) throw new RangeError(`there is no scenario for ${row}`);
  return found;
}

/** Why a cell cannot be run with a subject; undefined if it can. */
export function whyNotPlayed(cell: Cell, subject: string, library: ClientLibrary): string | undefined {
  if (!isHoldfast(subject))
    return library === "ioredis" ? undefined : `${subject} is played with the client library that it brings`;
  return whyNoLibrary(library, cell.column);
}

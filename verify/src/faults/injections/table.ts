/**
 * Every fault that strikes a single server, its clients, or the line between, by the row of the matrix.
 *
 * J07 is not here: a host cannot be suspended by a test, so that row runs on the simulation. J31 to J35 need replicas.
 */

import type { Injection } from "../stage.js";
import * as client from "./client.js";
import * as clock from "./clock.js";
import * as controls from "./controls.js";
import { manyWaiters } from "./crowd.js";
import * as durability from "./durability.js";
import { cutOffClient } from "./namespace.js";
import * as network from "./network.js";
import * as operator from "./operator.js";
import { pairs } from "./pair.js";
import * as server from "./server.js";

/** All of them. */
export const INJECTIONS: readonly Injection[] = [
  client.frozenHolder,
  client.frozenWaiter,
  client.killedHolder,
  client.vanishedHolder,
  client.blockedLoop,
  client.steppedClient,
  manyWaiters,
  network.lostRequest,
  network.lostReply,
  network.stalledLine,
  network.lateRequest,
  network.delays,
  cutOffClient,
  network.killedCommands,
  network.killedSubscribers,
  network.bentMessages,
  server.frozenServer,
  server.slowServer,
  server.pausedClients,
  server.flushedScripts,
  server.errorReplies,
  durability.cleanRestart,
  durability.killedServer,
  durability.forgetfulRestart,
  durability.quietRestart,
  durability.staleRestart,
  durability.powerLoss,
  clock.smallStep,
  clock.forwardStep,
  clock.frozenClock,
  operator.eviction,
  operator.guardedEviction,
  operator.foreignDelete,
  operator.plainCounterDeleted,
  operator.seededCounterDeleted,
  controls.plainCounterForgotten,
  controls.seededCounterForgotten,
  controls.unfencedEffects,
  controls.fencedEffects,
  pairs,
];

const BY_ROW: ReadonlyMap<string, Injection> = new Map(INJECTIONS.map((injection) => [injection.row, injection]));

/** The fault of a row; undefined if there is none here. */
export function injectionOf(row: string): Injection | undefined {
  return BY_ROW.get(row);
}

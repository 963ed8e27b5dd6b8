/**
 * Every fault of a server, its clients, or the connection between them, by its row of the matrix.
 *
 * J07 is not here: a test cannot suspend a host, so that row runs in the simulation. J31 to J35 need replicas.
 */

import type { Column } from "../cell.js";
import { hasReplicas, isQuorum } from "../columns.js";
import type { Injection } from "../injection.js";
import { SINGLE } from "../matrix.js";
import * as client from "./client.js";
import * as clock from "./clock.js";
import * as cluster from "./cluster.js";
import * as controls from "./controls.js";
import { manyWaiters } from "./crowd.js";
import * as durability from "./durability.js";
import * as failover from "./failover.js";
import { cutOffClient } from "./namespace.js";
import * as network from "./network.js";
import * as operator from "./operator.js";
import { pairs } from "./pair.js";
import * as quorum from "./quorum.js";
import * as server from "./server.js";
import * as split from "./split.js";

/** All faults. */
export const INJECTIONS: readonly Injection[] = [
  client.frozenHolder,
  client.frozenWaiter,
  client.killedHolder,
  client.killsOnAHotName,
  client.killsWhileRetaining,
  client.killsOnManyNames,
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
  failover.lostPromotion,
  failover.failover,
  failover.guardedFailover,
  split.twoMasters,
  split.twoMastersAhead,
  failover.fencedPromotion,
  cluster.agreedFailover,
  cluster.movedSlot,
  quorum.hungMinority,
  quorum.killedMinority,
  quorum.lostMajority,
  quorum.contenders,
  quorum.jumpingVoter,
  quorum.forgetfulVoter,
  quorum.jumpingQuiet,
  quorum.forgottenLength,
];

const BY_ROW: ReadonlyMap<string, Injection> = new Map(INJECTIONS.map((injection) => [injection.row, injection]));

/** Rows that repeat another row with different client options, see `graceOf` and `releasesOf`. */
const OTHER_CLIENTS = /-(?:grace|strict|background|retained)$/;

/** Why a cell cannot be run; undefined if it can. */
function whyNot(row: string, column: Column): string | undefined {
  if (SINGLE.has(column)) return undefined;
  if (row === "J14") return "a client's own network reaches only one server";
  return undefined;
}

/** The fault of a row in that column; undefined if there is none. */
export function injectionOf(row: string, column: Column = "1n"): Injection | undefined {
  const found = BY_ROW.get(row) ?? BY_ROW.get(row.replace(OTHER_CLIENTS, ""));
  const why = whyNot(row, column);
  if (row === "J07" && isQuorum(column))
    return { row, unavailable: async () => "the simulation has one server", strike: async () => {} };
  if (found === undefined) return undefined;
  // A server that shuts down normally keeps its data only if it has a file.
  const servers = row === "J23" && hasReplicas(column) ? { servers: { durability: "1a" as const } } : {};
  return { ...found, ...servers, ...(why === undefined ? {} : { unavailable: async () => why }) };
}

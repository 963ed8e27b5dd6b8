/** Two faults with guarantees at the same time, from those whose proofs do not interfere. */

import type { Injection } from "../injection.js";
import { blockedLoop, freezeAnywhere } from "./client.js";
import {
  bentMessages,
  delays,
  killedCommands,
  killedSubscribers,
  lateRequest,
  lostReply,
  lostRequest,
  stalledLine,
} from "./network.js";
import { flushedScripts, frozenServer, pausedClients } from "./server.js";
import { contention } from "./striking.js";

/** A directed freeze needs a grant first, which the other fault may prevent. */
const frozen: Injection = { row: "J01", work: contention, strike: freezeAnywhere };
const OF_CLIENTS = [frozen, blockedLoop];
const OF_SERVERS = [frozenServer, pausedClients, flushedScripts];
const OF_LINES = [lostRequest, lostReply, stalledLine, lateRequest, delays, killedSubscribers, bentMessages];

const PAIRS: readonly (readonly [Injection, Injection])[] = [
  ...OF_LINES.flatMap((line) => [...OF_CLIENTS, ...OF_SERVERS].map((other) => [line, other] as const)),
  // Not paired with faults of the server, because it would close the connections that inject them.
  ...OF_CLIENTS.map((other) => [killedCommands, other] as const),
];

/** The two faults are drawn again for each strike. */
export const pairs: Injection = {
  row: "pair",
  work: contention,
  async strike(stage) {
    await Promise.all(stage.random.pick(PAIRS).map((injection) => injection.strike(stage)));
  },
};

/** J09 to J13 and J15 to J17: faults of the connection between clients and server. */

import type { Letter } from "../cell.js";
import type { Injection } from "../injection.js";
import type { FaultProxy, Matches, Stage } from "../stage.js";
import { ask } from "../topology/ask.js";
import { contention, happens, isOfALock, pauseMs, serverOf, strikeOver, untilGivenUp } from "./striking.js";

const VERBS = ["acquire", "acquire", "release", "release", "extend", "leave", "count-down", "await", "set-count"];

/** Additional verbs of these kinds. */
const OWN_VERBS: Partial<Record<Letter, readonly string[]>> = {
  e: ["resign", "proclaim"],
  b: ["arrive", "leave", "reset"],
  c: ["wait", "signal"],
};

/** Matches requests of a lock with a randomly drawn verb, or any request, because not every lock has every verb. */
function drawn(stage: Stage): Matches {
  if (stage.peer !== undefined || stage.random.chance(0.4)) return isOfALock;
  const verb = stage.random.pick([...VERBS, ...(OWN_VERBS[stage.cell.letter] ?? [])]);
  return (words) => isOfALock(words) && words[1]?.endsWith(`/${verb}`) === true;
}

/** Arms a fault of the proxy and waits until it strikes. If no matching request comes, matches any request. */
async function armed(
  stage: Stage,
  id: string,
  arm: (proxy: FaultProxy, matches: Matches) => Promise<void>,
  counter: string,
): Promise<void> {
  const { proxy } = stage.topology;
  const beganMs = stage.nowMs();
  const before = proxy.counts[counter] ?? 0;
  for (const matches of [drawn(stage), isOfALock]) {
    const once = untilGivenUp(matches);
    const hasStruck = await happens(stage, arm(proxy, once.matches), 4 * stage.leaseMs);
    once.giveUp();
    if (hasStruck) break;
  }
  const count = (proxy.counts[counter] ?? 0) - before;
  strikeOver(stage, id, "line", beganMs, count > 0 ? `${counter} ${count}` : null, proxy.takeLate());
}

/** J09: a request does not reach the server. */
export const lostRequest: Injection = {
  row: "J09",
  work: contention,
  strike: (stage) => armed(stage, "J09", (proxy, matches) => proxy.loseRequest(matches), "lostRequests"),
};

/** J10: the script has run, but its reply does not reach the client. */
export const lostReply: Injection = {
  row: "J10",
  work: contention,
  strike: (stage) => armed(stage, "J10", (proxy, matches) => proxy.loseReply(matches), "lostReplies"),
};

/** J11: no data passes in one or both directions, and neither side is notified. */
export const stalledLine: Injection = {
  row: "J11",
  work: contention,
  async strike(stage) {
    const { proxy } = stage.topology;
    const direction = stage.random.pick(["requests", "replies", "both"] as const);
    const beganMs = stage.nowMs();
    proxy.stall(direction);
    const { forwarded = 0, delivered = 0, requests = 0 } = proxy.counts;
    try {
      await stage.sleep(pauseMs(stage));
    } finally {
      const after = proxy.counts;
      const isStill =
        (direction === "replies" || after.forwarded === forwarded) &&
        (direction === "requests" || after.delivered === delivered);
      const came = (after.requests ?? 0) - requests;
      proxy.resume();
      const forMs = (stage.nowMs() - beganMs).toFixed(0);
      strikeOver(
        stage,
        "J11",
        "line",
        beganMs,
        isStill ? `no ${direction} passed for ${forMs} ms, ${came} sent` : null,
      );
    }
  },
};

/** J12: a request arrives after its client has given up, or twice. */
export const lateRequest: Injection = {
  row: "J12",
  work: contention,
  async strike(stage) {
    if (stage.random.chance(0.5)) {
      // TCP never delivers twice, so the second reply must not be the only reply that the client gets on a
      // connection.
      await armed(stage, "J12", (proxy, matches) => proxy.duplicate(matches, "first"), "duplicated");
      return;
    }
    const delayMs = stage.random.between(0.1, 3) * stage.leaseMs;
    await armed(stage, "J12", (proxy, matches) => proxy.late(matches, delayMs), "lateArrivals");
  },
};

/** J13: every request and reply is delayed, sometimes by more than a lease. */
export const delays: Injection = {
  row: "J13",
  work: contention,
  async strike(stage) {
    const { random, topology, leaseMs } = stage;
    const mostMs = random.pick([0.05, 0.3, 1.5]) * leaseMs;
    const beganMs = stage.nowMs();
    topology.proxy.delay(() => (random.chance(0.2) ? random.between(0, mostMs) : random.between(0, mostMs / 10)));
    let longestMs = 0;
    try {
      const endMs = beganMs + 4 * leaseMs;
      while (stage.nowMs() < endMs) {
        const sentMs = stage.nowMs();
        await ask(topology.port, ["PING"]);
        longestMs = Math.max(longestMs, stage.nowMs() - sentMs);
      }
    } finally {
      topology.proxy.delay(undefined);
    }
    const proof = longestMs > mostMs / 4 ? `an answer took ${longestMs.toFixed(0)} ms` : null;
    strikeOver(stage, "J13", "line", beganMs, proof);
  },
};

/** J15: the server closes the command connections. */
export const killedCommands: Injection = {
  row: "J15",
  work: contention,
  strike: (stage) => killConnections(stage, "J15", "normal"),
};

/** J16: the server closes the subscriber connections. */
export const killedSubscribers: Injection = {
  row: "J16",
  work: contention,
  strike: (stage) => killConnections(stage, "J16", "pubsub"),
};

async function killConnections(stage: Stage, id: string, type: "normal" | "pubsub"): Promise<void> {
  const beganMs = stage.nowMs();
  let killed = 0;
  // Sometimes repeatedly, so that it hits connections that are being opened.
  const rounds = stage.random.pick([1, 1, 5]);
  for (let round = 0; round < rounds; round += 1) {
    killed += Number(await serverOf(stage).command("CLIENT", "KILL", "TYPE", type));
    if (round + 1 < rounds) await stage.sleep(stage.random.between(0, stage.leaseMs / 4));
  }
  strikeOver(stage, id, "server", beganMs, killed > 0 ? `${killed} connections killed` : null);
}

const RUBBISH = ["", "~", "1", "0/0/0", "9007199254740993", "!".repeat(4_096), "granted", "1 1 1 1", "\u0000"];

/** J17: messages from the server to waiters are lost, repeated or forged. */
export const bentMessages: Injection = {
  row: "J17",
  work: contention,
  async strike(stage) {
    const { random, topology, leaseMs } = stage;
    const { proxy } = topology;
    const server = serverOf(stage);
    const isSharded = stage.cell.column === "C";
    const listing = ["PUBSUB", isSharded ? "SHARDCHANNELS" : "CHANNELS"];
    const publish = isSharded ? "SPUBLISH" : "PUBLISH";
    const beganMs = stage.nowMs();
    const before = proxy.counts.droppedMessages ?? 0;
    proxy.dropMessages(random.pick([0, 0.3, 0.5, 1, 1]));
    let heard = 0;
    try {
      for (let round = 0; round < 6; round += 1) {
        await stage.sleep(random.between(0.2, 0.6) * leaseMs);
        const channels = (await server.command(...listing, stage.peer === undefined ? "hf:*" : "*")) as string[];
        if (channels.length === 0) continue;
        heard += Number(await server.command(publish, random.pick(channels), random.pick(RUBBISH)));
        const last = topology.proxy.lastMessage();
        // Publishes the server's own message a second time.
        if (last !== undefined) heard += Number(await server.command(publish, last.channel, last.text).catch(() => 0));
      }
    } finally {
      proxy.dropMessages(0);
    }
    const dropped = (proxy.counts.droppedMessages ?? 0) - before;
    const proof = dropped + heard > 0 ? `${dropped} messages dropped, ${heard} forged or repeated` : null;
    strikeOver(stage, "J17", "line", beganMs, proof);
  },
};

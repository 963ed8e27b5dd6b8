/** L03 to L05: one of three contending processes no longer receives messages from the server. */
import type { Actor } from "./actor.js";
import type { Measure } from "./measure.js";
import { grantsIn, longestWaitMs } from "./rates.js";
import { type Scenario, seconds, type Theater } from "./theater.js";

const PROCESSES = 3;
const LEASE_MS = 30_000;
const HOLD_MS = 20;
const WAIT_MS = 20_000;
/** Connections and caches settle before anything is counted. */
const WARM_UP_MS = 2_000;
const BEFORE_MS = 6_000;
/** The time after which the others must have reached their earlier rate again. */
const RECOVERED_AFTER_MS = 10_000;
const AFTER_MS = 10_000;
const LEAST_SHARE = 90;
/** The time by which the affected process must have resubscribed. */
const RESUBSCRIBED_MS = 15_000;
/** How long it is then observed for new grants. */
const SERVED_MS = 10_000;
/** A process that works again gets locks more often than by polling every few seconds. */
const SERVED_RATE = 1;
/** L05: no process waits longer than this, including the affected one. */
const LONGEST_WAIT_MS = 15_000;

/** The result of a contention in which the first process was affected. */
interface Contention {
  readonly deaf: Actor;
  readonly others: readonly Actor[];
  readonly beganMs: number;
  readonly endedMs: number;
}

/** Runs a contention of three processes, one of which is affected halfway. `proofOf` returns the proof afterward. */
async function contend(
  theater: Theater,
  strike: (deaf: Actor) => Promise<void>,
  proofOf: (deaf: Actor) => string | null,
): Promise<Contention> {
  const { lockName, renews } = theater;
  const [deaf, ...others] = await theater.start(PROCESSES);
  if (deaf === undefined) throw new Error("processes were started");
  for (const actor of [deaf, ...others])
    await actor.call({ verb: "contend", lockName, leaseMs: LEASE_MS, waitMs: WAIT_MS, holdMs: HOLD_MS, renew: renews });
  await theater.sleep(WARM_UP_MS + BEFORE_MS);
  const beganMs = theater.nowMs();
  await strike(deaf);
  await theater.sleep(RESUBSCRIBED_MS + SERVED_MS);
  const endedMs = theater.nowMs();
  theater.struck({ beganMs, endedMs, target: deaf.name, proof: proofOf(deaf) });
  return { deaf, others, beganMs, endedMs };
}

/** The combined rate of processes, per second. */
function rateOf(theater: Theater, actors: readonly Actor[], fromMs: number, untilMs: number): number {
  const records = theater.records();
  const { lockName } = theater;
  const grants = actors.map(({ name }) => grantsIn(records, { process: name, lockName, fromMs, untilMs }));
  return grants.reduce((sum, count) => sum + count, 0) / seconds(untilMs - fromMs);
}

function halfOpen(row: string, closesServerSide: boolean): Scenario {
  return {
    row,
    async play(theater) {
      let struck = 0;
      const { deaf, others, beganMs, endedMs } = await contend(
        theater,
        async ({ lines }) => {
          // In a cluster, the connection to one node; the others are unchanged.
          struck = lines.silence("subscribers", { closesServerSide, server: await theater.server() });
        },
        () => {
          const how = closesServerSide ? "closed on the server side only" : "silent, and open on both sides";
          return struck > 0 ? `subscriber connections struck: ${struck}, ${how}` : null;
        },
      );
      const before = rateOf(theater, others, beganMs - BEFORE_MS, beganMs);
      const after = rateOf(theater, others, beganMs + RECOVERED_AFTER_MS, beganMs + RECOVERED_AFTER_MS + AFTER_MS);
      const again = deaf.lines.subscribedMs.find((atMs) => atMs > beganMs) ?? Number.POSITIVE_INFINITY;
      const deafBefore = rateOf(theater, [deaf], beganMs - BEFORE_MS, beganMs);
      const deafAfter = rateOf(theater, [deaf], endedMs - SERVED_MS, endedMs);
      return [
        { what: "the others had the lock before at", value: before, unit: "/s" },
        { what: "and from 10 s on at", value: after, unit: "/s" },
        { what: "which is", value: (100 * after) / before, unit: "%", least: LEAST_SHARE },
        {
          what: "the deaf process subscribed again after",
          value: seconds(again - beganMs),
          unit: "s",
          most: seconds(RESUBSCRIBED_MS),
        },
        { what: "the deaf process had the lock before at", value: deafBefore, unit: "/s" },
        { what: "and from 15 s on at", value: deafAfter, unit: "/s", least: SERVED_RATE },
      ];
    },
  };
}

/** L03: the server still counts the subscriber. */
export const silentSubscriber: Scenario = halfOpen("L03", false);

/** L04: the server has closed its side of the connection, and the client has not noticed. */
export const closedSubscriber: Scenario = halfOpen("L04", true);

/** L05: subscriptions succeed, including new ones, but deliver nothing. */
export const emptySubscription: Scenario = {
  row: "L05",
  async play(theater) {
    const { lockName } = theater;
    const { deaf, others, beganMs, endedMs } = await contend(
      theater,
      async ({ lines }) => lines.swallowMessages(),
      ({ lines: { swallowed } }) => (swallowed > 0 ? `${swallowed} messages swallowed, subscriptions answered` : null),
    );
    const records = theater.records();
    const ofEach = [deaf, ...others].map(({ name }) =>
      grantsIn(records, { process: name, lockName, fromMs: endedMs - SERVED_MS, untilMs: endedMs }),
    );
    const warning = deaf.events.find(
      ({ what, atMs, message }) => what === "warning" && atMs > beganMs && /holdfast/i.test(message),
    );
    if (warning !== undefined) theater.note(`warning: ${warning.message}`);
    const measures: Measure[] = [
      {
        what: "the deaf process warned after",
        value: seconds((warning?.atMs ?? Number.POSITIVE_INFINITY) - beganMs),
        unit: "s",
        most: seconds(RESUBSCRIBED_MS + SERVED_MS),
      },
      {
        what: "the longest wait of any process was",
        value: seconds(longestWaitMs(records, { lockName, fromMs: beganMs, untilMs: endedMs })),
        unit: "s",
        most: seconds(LONGEST_WAIT_MS),
      },
      {
        what: "the others had the lock before at",
        value: rateOf(theater, others, beganMs - BEFORE_MS, beganMs),
        unit: "/s",
      },
      {
        what: "and from 15 s on at",
        value: rateOf(theater, others, endedMs - SERVED_MS, endedMs),
        unit: "/s",
        least: SERVED_RATE,
      },
      { what: "locks of the deaf process from 15 s on:", value: ofEach[0] ?? 0, unit: "", least: 1 },
      { what: "locks of the other that had fewest:", value: Math.min(...ofEach.slice(1)), unit: "", least: 1 },
    ];
    // Only Holdfast guarantees a warning.
    return theater.isHoldfast ? measures : measures.slice(1);
  },
};

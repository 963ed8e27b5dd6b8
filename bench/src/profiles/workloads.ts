/**
 * The profiled workloads: the measurements that are limited by the processor, each with its yardstick and a peer if one
 * takes part.
 */
import type { Connection } from "../adapters/adapter.js";
import { Crew } from "../crew.js";
import type { Conditions } from "../measurements/entry.js";
import { upFor } from "../measurements/redlock.js";
import { warmUp } from "../measurements/warm-up.js";
import { processorOf, type Server } from "../server.js";
import { machineMs } from "../worker/clock.js";
import type { Crowd, CrowdDone, Hop, HopDone, Order, PairsDone, Profiled, ProfileOf } from "../worker/orders.js";
import { NUMBERS_PER_SECTION } from "../worker/section-log.js";
import { SERVER_PARTS, spentOnServer } from "./server-parts.js";
import type { Spent } from "./spent.js";

const US_PER_SECOND = 1e6;
const WARM_UP = { task: "pairs", seconds: 1, parallel: 16 } as const;
/** As long as in the measurements of crowds. */
const LONG_WARM_UP_SECONDS = 3;
const HOP = "publish";

/** One table. */
export interface Workload {
  readonly name: string;
  readonly title: string;
  /** The operation that is counted. */
  readonly unit: string;
  /** The first one is the yardstick. */
  readonly contestants: readonly string[];
  /** The number of servers it needs in addition to the shared one. 0 if absent. */
  readonly servers?: number;
  /** Length of one run, unless the command line says otherwise. */
  readonly seconds: number;
  run(name: string, conditions: Conditions): Promise<Spent>;
}

/** Short, because new servers of a quorum grant nothing for one lease, and the run waits that long. */
const QUORUM_LEASE_MS = 3_000;

/** Every workload. */
export const WORKLOADS: readonly Workload[] = [
  {
    name: "uncontended",
    title: "a free lock, one pair at a time",
    unit: "pair",
    contestants: ["raw", "holdfast/scripts", "holdfast", "verrou"],
    seconds: 3,
    run: (name, conditions) => pairs(name, conditions.connection, [conditions.server], 1, conditions.seconds),
  },
  {
    name: "parallel",
    title: "free locks, 128 pairs at a time",
    unit: "pair",
    contestants: ["raw", "holdfast/scripts", "holdfast", "verrou"],
    seconds: 2,
    run: (name, conditions) => pairs(name, conditions.connection, [conditions.server], 128, conditions.seconds),
  },
  {
    name: "server",
    title: "a free lock on the server, part by part",
    unit: "pair",
    contestants: SERVER_PARTS,
    seconds: 1,
    run: spentOnServer,
  },
  {
    name: "gap",
    title: "hand-over between processes: 4 processes × 8 callers, sections of 1 ms",
    unit: "section",
    contestants: [HOP, "holdfast", "holdfast/strict", "redlock"],
    seconds: 3,
    run: (name, conditions) =>
      name === HOP ? hops(conditions, 4, 1) : crowd(name, conditions, { processes: 4, callers: 8, sectionMs: 1 }),
  },
  {
    name: "hot",
    title: "hot key: 2 processes × 100 callers, empty sections",
    unit: "section",
    contestants: [HOP, "holdfast", "holdfast/strict"],
    seconds: 3,
    run: (name, conditions) =>
      name === HOP ? hops(conditions, 2, 0) : crowd(name, conditions, { processes: 2, callers: 100, sectionMs: 0 }),
  },
  {
    name: "leases",
    title: "100,000 leases that are held: renewals",
    unit: "renewal",
    contestants: ["holdfast"],
    // A third of the lease, so that each lease is renewed once.
    seconds: 10,
    run: renewals,
  },
  {
    name: "redlock",
    title: "Redlock on 5 servers, one pair at a time",
    unit: "pair",
    contestants: ["raw", "holdfast", "redlock"],
    servers: 5,
    seconds: 3,
    async run(name, { connection, servers, seconds }) {
      await Promise.all(servers.map((server) => upFor(server, QUORUM_LEASE_MS)));
      const quorum = { ...connection, leaseMs: QUORUM_LEASE_MS, quorumPorts: servers.map(({ port }) => port) };
      return pairs(name, quorum, servers, 1, seconds);
    },
  },
];

async function pairs(
  name: string,
  connection: Connection,
  servers: readonly Server[],
  parallel: number,
  seconds: number,
): Promise<Spent> {
  return withCrew({ name, connection, processes: 1 }, async (crew) => {
    await warmUp(async () => (await crew.all<PairsDone>(() => WARM_UP, WARM_UP.seconds * 1_000))[0]?.pairs ?? 0);
    const order = { task: "pairs", seconds, parallel } as const;
    return spent<PairsDone>(crew, servers, order, seconds, (done) => done.pairs);
  });
}

async function hops({ connection, seconds, server }: Conditions, ring: number, pauseMs: number): Promise<Spent> {
  return withCrew({ name: HOP, connection, processes: ring }, async (crew) => {
    const orderFor = (forSeconds: number): ((index: number) => Hop) => {
      const untilMs = machineMs() + forSeconds * 1_000;
      return (index) => ({ task: "hop", index, ring, pauseMs, untilMs });
    };
    await crew.all(orderFor(LONG_WARM_UP_SECONDS), LONG_WARM_UP_SECONDS * 1_000);
    return spent<readonly HopDone[]>(crew, [server], orderFor(seconds), seconds, (done) => done.length);
  });
}

async function crowd(
  name: string,
  { connection, seconds, server }: Conditions,
  { processes, callers, sectionMs }: { processes: number; callers: number; sectionMs: number },
): Promise<Spent> {
  await server.control.flushall();
  return withCrew({ name, connection, processes }, async (crew) => {
    const orderFor = (lock: string, forSeconds: number): Crowd => {
      const fromMs = machineMs();
      const untilMs = fromMs + forSeconds * 1_000;
      return { task: "crowd", lock, callers, sectionMs, fromMs, untilMs, checkUntilMs: untilMs };
    };
    await crew.all(() => orderFor("warm-up", LONG_WARM_UP_SECONDS), LONG_WARM_UP_SECONDS * 1_000);
    const order = orderFor("hot", seconds);
    const sectionsOf = ({ sections }: CrowdDone): number => sections.length / NUMBERS_PER_SECTION;
    return spent<CrowdDone>(crew, [server], order, seconds, sectionsOf);
  });
}

async function renewals(name: string, { connection, seconds, leases, server }: Conditions): Promise<Spent> {
  await server.control.flushall();
  return withCrew({ name, connection, processes: 1, weighing: true }, async (crew) => {
    const settleMs = connection.leaseMs / RENEWALS_PER_LEASE;
    await crew.all(() => ({ task: "hold", leases, settleMs }), FILL_MS + settleMs);
    const renewed = (leases * seconds * 1_000) / settleMs;
    return spent(crew, [server], { task: "watch", seconds }, seconds, () => renewed);
  });
}

const RENEWALS_PER_LEASE = 3;
const FILL_MS = 120_000;

async function withCrew(
  options: Parameters<typeof Crew.start>[0],
  work: (crew: Crew) => Promise<Spent>,
): Promise<Spent> {
  const crew = await Crew.start(options);
  try {
    return await work(crew);
  } finally {
    await crew.end();
  }
}

async function spent<Done>(
  crew: Crew,
  servers: readonly Server[],
  order: ProfileOf["order"] | ((index: number) => ProfileOf["order"]),
  seconds: number,
  count: (done: Done) => number,
): Promise<Spent> {
  const used = async (): Promise<number> => {
    const each = await Promise.all(servers.map(({ control }) => processorOf(control)));
    return each.reduce((sum, one) => sum + one, 0) * US_PER_SECOND;
  };
  const orderOf = (index: number): Order => ({
    task: "profile",
    order: typeof order === "function" ? order(index) : order,
  });
  const before = await used();
  const done = await crew.all<Profiled<Done>>(orderOf, seconds * 1_000);
  return {
    operations: done.reduce((sum, { result }) => sum + count(result), 0),
    profiles: done.map(({ profile }) => profile),
    serverUs: (await used()) - before,
  };
}

/** The plan of a run on several servers: the sessions of a run on one server, and faults of several servers. */
import { type Plan, planOf, type Session } from "../plan.js";
import { Random } from "../random.js";
import type { Weather } from "../weather.js";

/** Independent servers that grant by majority; or a master with a replica. */
export type Topology = "quorum" | "replicas";

/** A fault, with its time and target. */
export type Strike = {
  readonly id: number;
  readonly atMs: number;
  readonly process: number;
  readonly server: number;
} & (
  | { readonly what: "weather"; readonly forMs: number; readonly weather: Weather; readonly isOfAll: boolean }
  | {
      readonly what: "cut";
      readonly connection: "commands" | "inbox";
      readonly backInMs: number;
      readonly resends: boolean;
    }
  | { readonly what: "freeze"; readonly forMs: number; readonly suspended: boolean }
  | { readonly what: "kill"; readonly backInMs: number }
  | { readonly what: "flush-scripts" }
  | { readonly what: "freeze-server"; readonly forMs: number }
  | { readonly what: "restart-server"; readonly forMs: number; readonly keeps: boolean }
  /** Writes during that time reach the replica only afterward. */
  | { readonly what: "lag"; readonly forMs: number }
  /**
   * The replica is promoted, `cutMs` after it received its last data. The old master is gone, or serves clients that
   * have not noticed for another `livesMs`. It returns as a replica, restarted or unchanged.
   */
  | {
      readonly what: "promote";
      readonly cutMs: number;
      readonly awayMs: number;
      readonly livesMs: number;
      readonly rejoinInMs: number;
      readonly restarts: boolean;
    }
);

/** The plan of one run. The faults of the underlying single-server plan are empty. */
export interface TopologyPlan extends Plan {
  readonly topology: Topology;
  readonly size: number;
  /** The longest lease. In runs with memory loss or promotion all leases have this length, unless `isMixed`. */
  readonly longestMs: number;
  /**
   * For a quorum whose servers forget: whether leases still differ in length. Then a majority never forgets at the
   * same time.
   */
  readonly isMixed: boolean;
  /** Whether a replica also gets its master's scripts, as before Redis 7. */
  readonly sharesScripts: boolean;
  /** Whether leases are long and always released. */
  readonly isLong: boolean;
  readonly strikes: readonly Strike[];
}

const FAULTS_END_MS = 7_000;
const FIRST_FAULT_MS = 300;
const LATE_MS = 2_500;
/** The longest pause between two release requests, plus the round trips of the last one. */
const LONG_TO_LEAVE_MS = 11_000 + 4_000;
const FIRST_CALLER_ID = 5_000;
const FIRST_PARTING_ID = 1_000_000;
/** A lock that no other session wants. */
const PARTED_LOCK = 50;
/** The random streams: in the upper half of the seed space, which nothing else uses. */
const STREAM = {
  quorum: 11 * 4_294_967_296,
  replicas: 13 * 4_294_967_296,
  callers: 17 * 4_294_967_296,
  mixed: 19 * 4_294_967_296,
  scripts: 23 * 4_294_967_296,
};
/** The lease length of some sessions on a quorum. */
const LONG_MS = 40_000;
const LEASES = [500, 1_500, 3_000] as const;
/**
 * Mixed lease lengths for servers that forget. The longest one lasts much longer than a server is kept out because of
 * the short ones.
 */
const MIXED = [500, 500, 1_500, 8_000] as const;

/**
 * The plan for a seed.
 *
 * @param kind  the kind of lock, with replicas; the same seed has the same callers and faults for every kind
 */
export function topologyPlanOf(seed: number, topology: Topology, kind = "mutex"): TopologyPlan {
  const random = new Random(seed + STREAM[topology]);
  const { oldProcess: _, ...base } = planOf(seed, kind, "none");
  const isCalm = random.chance(0.1);
  const size = topology === "replicas" ? 2 : random.pick([3, 3, 5]);
  const leaseMs = random.pick(LEASES);
  const mayForget = topology === "replicas" || random.chance(0.5);
  const isLong = !mayForget && random.chance(0.6);
  const sessions = base.sessions
    // Shared claims are covered by runs on one server.
    .filter(({ crowd }) => crowd === undefined)
    .map((session) => fitted(session, mayForget ? leaseMs : undefined, random, kind === "barrier"))
    .map((session) => (isLong ? lengthened(session, random) : session));
  let id = 10_000;
  const draw = topology === "quorum" ? drawOfQuorum : drawOfReplicas;
  const strikes = Array.from({ length: isCalm ? 0 : random.whole(1, 7) }, () => {
    id += 1;
    return draw(random, id, base.processCount, size, mayForget);
  });
  if (topology === "replicas" && !isCalm) strikes.push(drawPromotion(random, id + 1));
  for (const strike of strikes) {
    const callers = callersAround(strike, base, mayForget ? leaseMs : undefined, random, sessions.length);
    sessions.push(...callers.map((session) => (isLong ? lengthened(session, random) : varied(session, seed))));
  }
  const isMixed = topology === "quorum" && mayForget && new Random(seed + STREAM.mixed).chance(0.6);
  if (isMixed) {
    const holder = holderOf(seed, base);
    for (const [place, session] of sessions.entries()) sessions[place] = mixed(session, seed, holder);
    const [callers, faults] = isCalm ? [[], []] : parted(seed, base, size, holder);
    sessions.push(...callers);
    strikes.push(...faults);
  }
  const longestMs = Math.max(0, ...sessions.map((session) => Math.max(session.leaseMs, session.extendMs ?? 0)));
  const calmFromMs = isCalm ? base.calmFromMs : FAULTS_END_MS + LATE_MS + (isLong ? LONG_TO_LEAVE_MS : 2 * longestMs);
  return {
    ...base,
    profile: isCalm ? "none" : "promised",
    sessions,
    faults: [],
    topology,
    size,
    longestMs,
    isMixed,
    sharesScripts: topology === "replicas" && new Random(seed + STREAM.scripts).chance(0.3),
    isLong,
    strikes: strikes.sort((a, b) => a.atMs - b.atMs),
    calmFromMs,
    ...(isCalm ? {} : { strikesEndMs: calmFromMs }),
  };
}

/** The same plan with only those sessions and faults. */
export function topologyReduced(plan: TopologyPlan, ids: ReadonlySet<number>): TopologyPlan {
  return {
    ...plan,
    sessions: plan.sessions.filter(({ id }) => ids.has(id)),
    strikes: plan.strikes.filter(({ id }) => ids.has(id)),
  };
}

/** Sessions that call during the fault, so that it affects at least one. */
function callersAround(
  strike: Strike,
  { processCount, sessions: [example] }: Plan,
  leaseMs: number | undefined,
  random: Random,
  known: number,
): Session[] {
  const { what, atMs } = strike;
  const lastsMs = what === "promote" ? strike.cutMs + strike.awayMs : "forMs" in strike ? strike.forMs : 0;
  const count = what === "promote" ? random.whole(2, 5) : random.whole(0, 3);
  if (example === undefined || lastsMs === 0) return [];
  return Array.from({ length: count }, (_, place) => ({
    id: FIRST_CALLER_ID + known + place,
    process: random.whole(0, processCount - 1),
    lock: 0,
    atMs: atMs + random.whole(-100, lastsMs + 100),
    isTry: random.chance(0.1),
    waitMs: random.pick([300, 3_000, 8_000, Number.POSITIVE_INFINITY]),
    leaseMs: leaseMs ?? random.pick(LEASES),
    renew: random.chance(0.7),
    abortAfterMs: random.chance(0.1) ? random.whole(0, 1_000) : null,
    // Many holds last longer than the others need to find the new master.
    holdMs: random.chance(0.4) ? random.whole(0, 20) : random.whole(200, 3_000),
    extendMs: null,
    end: "release" as const,
    amount: 1,
    other: 0,
  }));
}

/** Varies the amount and the partner of a session, from a separate stream, because mutex sessions do not use them. */
function varied(session: Session, seed: number): Session {
  const random = new Random(seed + STREAM.callers + session.id);
  return { ...session, amount: random.whole(1, 4), other: random.whole(0, 2) };
}

/**
 * @param leaseMs     the lease length, if it is the same for all
 * @param usesForce   whether sessions may end with a forced release, which repairs a barrier
 */
function fitted(drawn: Session, leaseMs: number | undefined, random: Random, usesForce: boolean): Session {
  const { way: _, ...session } = drawn;
  const { end, extendMs, atMs } = session;
  const gentle = end === "release" || end === "drop" ? end : random.pick(["release", "drop"] as const);
  const common = {
    ...session,
    // By then the first process has confirmed to the servers that they may grant.
    atMs: atMs + 200,
    end: usesForce && end === "force" ? end : gentle,
  };
  if (leaseMs === undefined) return common;
  return {
    ...common,
    leaseMs,
    holdMs: random.chance(0.2) ? 0 : random.whole(1, leaseMs * 2),
    extendMs: extendMs === null ? null : leaseMs,
  };
}

/** The process with the longest leases. */
function holderOf(seed: number, { processCount }: Plan): number {
  return new Random(seed + STREAM.mixed).whole(0, processCount - 1);
}

/**
 * Gives a session its own lease length, with the longest ones in one process. Uses a separate stream, so that the
 * rest of the plan stays the same.
 */
function mixed(session: Session, seed: number, holder: number): Session {
  const random = new Random(seed + STREAM.mixed + session.id);
  const lengths = session.process === holder ? MIXED : MIXED.slice(0, -1);
  const leaseMs = random.pick(lengths);
  const extendMs = session.extendMs === null ? null : random.pick(lengths);
  return { ...session, leaseMs, extendMs, holdMs: random.chance(0.3) ? random.whole(0, 20) : random.whole(1, leaseMs) };
}

/**
 * Sessions in which a client with a long lease reaches only a bare majority; then one of those servers forgets and
 * the client can no longer reach it; and a client with short leases reaches that server and the servers that do not
 * know the lease.
 */
function parted(
  seed: number,
  { processCount, sessions: [example] }: Plan,
  size: number,
  holder: number,
): [Session[], Strike[]] {
  const random = new Random(seed + STREAM.mixed);
  const forgetful = random.whole(0, size - 1);
  const others = Array.from({ length: size - 1 }, (_, place) => (forgetful + 1 + place) % size);
  const knowing = others.slice(0, (size - 1) / 2);
  const rival = (holder + 1) % processCount;
  if (example === undefined || processCount < 2) return [[], []];
  const atMs = random.whole(1_000, 2_500);
  const weather = { ...drawWeather(random), requestLoss: 1 };
  const part = (process: number, server: number, fromMs: number, forMs: number): Strike => ({
    id: FIRST_PARTING_ID + 10 * process + server,
    atMs: fromMs,
    process,
    server,
    what: "weather",
    forMs,
    weather,
    isOfAll: false,
  });
  const strikes: Strike[] = [
    ...others.slice(knowing.length).map((server) => part(holder, server, atMs - 300, 4_000)),
    part(holder, forgetful, atMs + 400, FAULTS_END_MS - atMs),
    ...knowing.map((server) => part(rival, server, atMs + 300, FAULTS_END_MS - atMs)),
    {
      id: FIRST_PARTING_ID,
      atMs: atMs + random.whole(500, 900),
      process: holder,
      server: forgetful,
      what: "restart-server",
      forMs: random.whole(1, 300),
      keeps: false,
    },
  ];
  const session = (place: number, process: number, fromMs: number, leaseMs: number, holdMs: number): Session => ({
    ...example,
    id: FIRST_PARTING_ID + place,
    process,
    lock: PARTED_LOCK,
    atMs: fromMs,
    isTry: false,
    waitMs: 8_000,
    leaseMs,
    renew: false,
    abortAfterMs: null,
    holdMs,
    extendMs: null,
    end: "release",
  });
  const [shortest, longest] = [MIXED[0], MIXED.at(-1) ?? 0];
  return [
    [
      session(100, holder, atMs, longest, longest - 500),
      // A caller that gets no majority for a whole lease gives up, so it calls repeatedly.
      ...[1, 2, 3, 4, 5, 6].map((time) => session(100 + time, rival, atMs + 500 * time, shortest, 100)),
    ],
    strikes,
  ];
}

/**
 * Gives a session a lease that outlasts all faults, so that a lock that is never released is still present at the
 * end.
 */
function lengthened(session: Session, random: Random): Session {
  const extendMs = session.extendMs === null ? null : LONG_MS;
  return { ...session, leaseMs: LONG_MS, extendMs, holdMs: random.whole(0, 300), end: "release" };
}

function drawOfQuorum(random: Random, id: number, processes: number, size: number, mayForget: boolean): Strike {
  const base = drawPlace(random, id, processes, size);
  const common = drawCommon(random, base);
  if (common !== undefined) return common;
  return { ...base, what: "restart-server", forMs: random.whole(1, 800), keeps: !mayForget || random.chance(0.5) };
}

function drawOfReplicas(random: Random, id: number, processes: number, size: number): Strike {
  const base = drawPlace(random, id, processes, size);
  const common = drawCommon(random, base);
  if (common !== undefined) return common;
  return random.chance(0.5)
    ? { ...base, what: "lag", forMs: random.whole(1, 2_000) }
    : { ...drawPromotion(random, id), atMs: base.atMs };
}

function drawPlace(random: Random, id: number, processes: number, size: number): Omit<Strike, "what"> {
  return {
    id,
    atMs: random.whole(FIRST_FAULT_MS, FAULTS_END_MS - 2_000),
    process: random.whole(0, processes - 1),
    server: random.whole(0, size - 1),
  };
}

/** Draws a fault that both topologies can have; undefined for a fault specific to the topology. */
function drawCommon(random: Random, base: Omit<Strike, "what">): Strike | undefined {
  const forMs = random.chance(0.5) ? random.whole(1, 500) : random.whole(1, 2_000);
  switch (random.whole(0, 9)) {
    case 0:
    case 1:
    case 2:
      return { ...base, what: "weather", forMs, weather: drawWeather(random), isOfAll: random.chance(0.4) };
    case 3: {
      const connection = random.pick(["commands", "commands", "inbox"] as const);
      return { ...base, what: "cut", connection, backInMs: random.whole(1, 800), resends: random.chance(0.5) };
    }
    case 4:
      return { ...base, what: "freeze", forMs, suspended: random.chance(0.3) };
    case 5:
      return { ...base, what: "kill", backInMs: random.whole(1, 1_500) };
    case 6:
      return random.chance(0.3) ? { ...base, what: "flush-scripts" } : { ...base, what: "freeze-server", forMs };
    default:
      return undefined;
  }
}

function drawPromotion(random: Random, id: number): Strike {
  const lives = random.chance(0.15);
  return {
    id,
    atMs: random.whole(FIRST_FAULT_MS, FAULTS_END_MS - 2_000),
    process: 0,
    server: 0,
    what: "promote",
    cutMs: random.pick([0, 5, 50, 400, 1_000]),
    awayMs: lives ? 0 : random.whole(1, random.pick([50, 500])),
    livesMs: lives ? random.whole(50, 1_500) : 0,
    rejoinInMs: random.whole(1, 800),
    restarts: random.chance(0.6),
  };
}

function drawWeather(random: Random): Weather {
  const rate = (): number => (random.chance(0.5) ? 0 : random.pick([0.05, 0.2, 0.6]));
  return {
    requestLoss: rate(),
    replyLoss: rate(),
    messageLoss: random.chance(0.2) ? 1 : rate(),
    duplicate: rate(),
    late: rate() / 2,
    lateMs: random.pick([100, 1_000, LATE_MS]),
    slow: rate(),
    slowMs: random.pick([20, 200, 1_500]),
  };
}

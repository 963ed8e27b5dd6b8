/**
 * The plan of a run: lists of sessions and faults, all drawn from the seed before it starts.
 *
 * Removing an entry does not change the others, which is how failing runs are reduced.
 */
import { crowdsOf } from "./crowds.js";
import { drawnSince } from "./drawn-since.js";
import type { FaultEvent } from "./fault-event.js";
import { handOffMsOf, STALLS_END_MS, stallsOf } from "./hand-offs.js";
import { newcomersOf } from "./newcomers.js";
import { oldProcessOf } from "./protocol-0.js";
import { Random } from "./random.js";
import { repeatsOf } from "./repeats.js";
import type { Session } from "./session.js";
import type { Weather } from "./weather.js";

export type { FaultEvent } from "./fault-event.js";
export type { Session } from "./session.js";

/**
 * Which faults may occur.
 *
 * - `none`: no faults
 * - `promised`: faults under which all guarantees hold
 * - `forgets`: also a server that restarts with an older state or none (assumption A3)
 * - `clock-forward`: also a server clock that is set forward (assumption A2)
 * - `stalls`: only processes that freeze or receive no messages, mostly right after a grant
 */
export type Profile = "none" | "promised" | "forgets" | "clock-forward" | "stalls";

/** The plan of a run. */
export interface Plan {
  readonly seed: number;
  readonly kind: string;
  readonly profile: Profile;
  readonly processCount: number;
  readonly commandTimeoutMs: number;
  /** How long a grant by message lasts until it is confirmed. */
  readonly handOffMs: number;
  /** The index of a process with protocol 0, which has no hand-off; absent if all use the present protocol. */
  readonly oldProcess?: number;
  /** The processes that release without a script, as on a server with native commands (docs/adr/149). */
  readonly natively: readonly number[];
  /** Options for requests of `holdfast/web-locks`, which have no such options themselves; absent if there are none. */
  readonly requests?: { readonly leaseMs: number; readonly renew: boolean };
  readonly sessions: readonly Session[];
  readonly faults: readonly FaultEvent[];
  /** When the fault-free phase begins. */
  readonly calmFromMs: number;
  /** When all faults other than `faults` have ended; absent if there are none. */
  readonly strikesEndMs?: number;
}

/** The random stream: in the upper half of the seed space, which nothing else uses. */
const NATIVE_STREAM = 37 * 4_294_967_296;
const SESSIONS_END_MS = 9_000;
const FAULTS_END_MS = 11_000;
const LATE_MS = 4_000;
const LEASES = [100, 250, 500, 1_000, 1_000, 2_000, 3_000] as const;
const WAITS = [50, 300, 1_000, 3_000, 8_000, Infinity] as const;

/** The plan for a seed. */
export function planOf(seed: number, kind: string, profile: Profile): Plan {
  const random = new Random(seed);
  const processCount = random.whole(2, 4);
  const lockCount = random.chance(0.7) ? 1 : 2;
  const sessionCount = random.whole(4, 18);
  const faultCount = profile === "none" || profile === "stalls" ? 0 : random.whole(0, 8);
  const ids = { next: 0 };
  const sessions = Array.from({ length: sessionCount }, () => drawSession(random, ids, processCount, lockCount));
  const faults = Array.from({ length: faultCount }, () => drawFault(random, ids, processCount, profile));
  const commandTimeoutMs = random.pick([100, 400, 1_000, 2_000]);
  sessions.push(...crowdsOf(seed, kind, processCount, lockCount), ...newcomersOf(seed, kind, processCount, lockCount));
  sessions.push(...repeatsOf(seed, kind, processCount));
  if (profile !== "none") faults.push(...drawnSince(seed, processCount, faultCount > 0));
  if (profile === "stalls" || faultCount > 0) faults.push(...stallsOf(seed, processCount, profile === "stalls"));
  const oldProcess = oldProcessOf(seed, kind, processCount);
  return {
    seed,
    kind,
    profile,
    ...(oldProcess === undefined ? {} : { oldProcess }),
    processCount,
    commandTimeoutMs,
    handOffMs: handOffMsOf(seed),
    natively: nativelyOf(seed, processCount),
    sessions: sessions.sort((a, b) => a.atMs - b.atMs),
    faults: faults.sort((a, b) => a.atMs - b.atMs),
    calmFromMs: profile === "stalls" ? STALLS_END_MS : faultCount === 0 ? SESSIONS_END_MS : FAULTS_END_MS + LATE_MS,
  };
}

/**
 * In half of the plans, most processes release natively. Uses its own random stream, for the same reason as in
 * drawn-since.ts.
 */
function nativelyOf(seed: number, processCount: number): number[] {
  const random = new Random(seed + NATIVE_STREAM);
  const chance = random.pick([0, 0.7]);
  return Array.from({ length: processCount }, (_, index) => index).filter(() => random.chance(chance));
}

/** The same plan with only those sessions and faults. */
export function reduced(plan: Plan, ids: ReadonlySet<number>): Plan {
  return {
    ...plan,
    sessions: plan.sessions.filter(({ id }) => ids.has(id)),
    faults: plan.faults.filter(({ id }) => ids.has(id)),
  };
}

function drawSession(random: Random, ids: { next: number }, processCount: number, lockCount: number): Session {
  ids.next += 1;
  const leaseMs = random.pick(LEASES);
  return {
    id: ids.next,
    process: random.whole(0, processCount - 1),
    lock: random.whole(0, lockCount - 1),
    // Half of the sessions begin at about the same time, so that queues form.
    atMs: random.chance(0.5) ? random.whole(0, 300) : random.whole(0, SESSIONS_END_MS),
    isTry: random.chance(0.2),
    waitMs: random.pick(WAITS),
    leaseMs,
    renew: random.chance(0.6),
    abortAfterMs: random.chance(0.12) ? random.whole(0, 3_000) : null,
    holdMs: random.chance(0.2) ? 0 : random.whole(1, leaseMs * 2),
    extendMs: random.chance(0.2) ? random.pick(LEASES) : null,
    end: random.chance(0.75) ? "release" : random.pick(["drop", "export", "force"]),
    amount: random.whole(1, 4),
    other: random.whole(0, processCount - 1),
  };
}

function drawFault(random: Random, ids: { next: number }, processCount: number, profile: Profile): FaultEvent {
  ids.next += 1;
  const base = {
    id: ids.next,
    atMs: random.whole(0, FAULTS_END_MS - 4_000),
    process: random.whole(0, processCount - 1),
  };
  const forMs = random.chance(0.5) ? random.whole(1, 500) : random.whole(1, 3_500);
  if (profile === "forgets" && random.chance(0.3)) {
    return { ...base, what: "restart-server", forMs: random.whole(1, 300), keeps: random.pick(["some", "none"]) };
  }
  if (profile === "clock-forward" && random.chance(0.3)) {
    return { ...base, what: "step-server-clock", byMs: random.whole(100, 4_000) };
  }
  switch (random.whole(0, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return { ...base, what: "weather", forMs, weather: drawWeather(random) };
    case 4:
      return { ...base, what: "cut-commands", backInMs: random.whole(1, 1_000), resends: random.chance(0.5) };
    case 5:
      return { ...base, what: "cut-inbox", backInMs: random.whole(1, 1_000), goneInMs: random.pick([0, 0, 50, 2_000]) };
    case 6:
      return { ...base, what: "freeze", forMs, suspended: random.chance(0.3) };
    case 7:
      return { ...base, what: "kill", backInMs: random.whole(1, 2_000), goneInMs: random.pick([0, 0, 50, 2_000]) };
    case 8:
      return { ...base, what: "step-wall", byMs: random.whole(-5_000, 5_000) };
    case 9:
      return { ...base, what: "flush-scripts" };
    case 10:
      return { ...base, what: "freeze-server", forMs };
    case 11:
      return { ...base, what: "restart-server", forMs: random.whole(1, 800), keeps: "all" };
    default:
      return random.chance(0.5)
        ? { ...base, what: "step-server-clock", byMs: -random.whole(1, 2_000) }
        : { ...base, what: "freeze-server-clock", forMs: random.whole(1, 1_500) };
  }
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
    slowMs: random.pick([20, 200, 2_000]),
  };
}

/**
 * A process whose callers contend for every lane with one build of the library, until it receives the command to stop
 * or to crash.
 */
import process, { argv, exit } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { AcquireOptions, Holdfast, Lease } from "holdfast";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { chanceOf } from "../failovers/chance.js";
import type { Build } from "./builds.js";
import { LANES, type Lane, LONGEST_KILLED_MS, PERMITS } from "./lanes.js";
import { type Entry, LOG_KEY, type LogEntry, nowMs } from "./log.js";
import { type Mistake, withMistake } from "./mistakes.js";

/** The settings of a worker. */
export interface Orders {
  readonly number: number;
  readonly build: Build;
  /** URL of the build's entry point. */
  readonly entry: string;
  readonly port: number;
  readonly seed: number;
  /** The share of its sections that are long. */
  readonly longShare: number;
  /** Only for the build of this tree. */
  readonly mistake: Mistake | undefined;
}

const PATIENT_MS = 120_000;
/** The share of callers with a short wait limit. */
const IMPATIENT_SHARE = 0.15;
const LOOK_EVERY_MS = 50;
/** The share of slow sections, in lanes that have them. */
const SLOW_SHARE = 0.3;

const orders = JSON.parse(argv[2] ?? "{}") as Orders;
const { number, build } = orders;
const chance = chanceOf(orders.seed * 1_000 + number);
const log = new Redis({ port: orders.port });
log.on("error", () => {});
/** Aborts the waits of all lanes, and those of lanes that a killed worker must not hold. */
const over = new AbortController();
const dying = new AbortController();
let lastId = 0;

function note(entry: LogEntry): Promise<unknown> {
  return log.rpush(LOG_KEY, JSON.stringify(entry));
}

async function connect(): Promise<{ holdfast: Holdfast; close: () => unknown }> {
  const { createHoldfast } = (await import(orders.entry)) as typeof import("holdfast");
  // ioredis resends requests that a lost connection left without a reply; node-redis does not.
  const redis = number % 2 === 0 ? new Redis({ port: orders.port }) : createClient({ socket: { port: orders.port } });
  redis.on("error", () => {});
  if (!(redis instanceof Redis)) await redis.connect();
  const close = (): unknown => (redis instanceof Redis ? redis.disconnect() : redis.destroy());
  if (build === "old" || orders.mistake === undefined)
    return { holdfast: createHoldfast({ redis: redis as never }), close };
  const { storeFor } = await import("holdfast/simulation");
  return { holdfast: createHoldfast({ store: withMistake(storeFor(redis as never), orders.mistake) }), close };
}

const { holdfast, close } = await connect();

interface Taken {
  readonly lease: Lease;
  readonly amount: number;
  readonly mode: Entry["mode"];
}

async function take({ kind, name }: Lane, options: AcquireOptions): Promise<Taken> {
  if (kind === "mutex") return { lease: await holdfast.mutex(name).acquire(options), amount: 1, mode: "write" };
  // Only the callers of a mutex share claims.
  const { fairness: _, ...rest } = options;
  if (kind === "semaphore") {
    const permits = chance.between(0, 1) < 0.3 ? PERMITS : 1;
    const lease = await holdfast.semaphore(name, { permits: PERMITS }).acquire({ ...rest, permits });
    return { lease, amount: permits, mode: "read" };
  }
  if (kind === "election")
    return { lease: await holdfast.election(name).campaign(`worker ${number}`, rest), amount: 1, mode: "write" };
  const lock = holdfast.readWriteLock(name);
  if (chance.between(0, 1) < 0.3) return { lease: await lock.write.acquire(rest), amount: 1, mode: "write" };
  return { lease: await lock.read.acquire(rest), amount: 1, mode: "read" };
}

async function turn(lane: Lane, signal: AbortSignal): Promise<void> {
  const { kind, name, leaseMs, fairness } = lane;
  const isPatient = chance.between(0, 1) >= IMPATIENT_SHARE;
  const waitMs = isPatient ? PATIENT_MS : Math.ceil(chance.between(20, 300));
  const callMs = nowMs();
  let taken: Taken;
  try {
    taken = await take(lane, { leaseMs, fairness, waitMs, signal });
  } catch (error) {
    const { code } = error as { readonly code?: string };
    // On a busy machine, a caller with a short wait limit may get no reply in time. The others retry.
    const isTimeout = code === "ERR_LOCK_ACQUIRE_TIMEOUT" || (!isPatient && code === "ERR_LOCK_STORE");
    if (!signal.aborted && !isTimeout) {
      await note({ type: "failed", worker: number, build, text: `acquire of ${name}: ${String(error)}` });
      return;
    }
    const why = signal.aborted ? "stopped" : isPatient ? "starved" : "timeout";
    await note({ type: "ungranted", name, worker: number, build, callMs, endMs: nowMs(), why });
    return;
  }
  const { lease, amount, mode } = taken;
  const grantedMs = nowMs();
  lastId += 1;
  const id = `${number}/${lastId}`;
  let untilMs = grantedMs + lease.validForMs();
  let isNoted = false;
  if (untilMs > grantedMs) {
    const facts = { id, kind, name, worker: number, build, amount, mode, callMs, grantedMs, untilMs };
    await note({ type: "in", ...facts, token: lease.token });
    isNoted = true;
  }
  const endMs = grantedMs + sectionMs(lane);
  while (isNoted && nowMs() < endMs && !lease.signal.aborted && !signal.aborted) {
    await sleep(Math.min(LOOK_EVERY_MS, Math.max(1, endMs - nowMs())));
    const laterMs = nowMs() + lease.validForMs();
    if (lease.validForMs() > 0 && laterMs > untilMs + 5) {
      untilMs = laterMs;
      await note({ type: "still", id, untilMs });
    }
  }
  const reason: unknown = lease.signal.aborted ? lease.signal.reason : undefined;
  if (isNoted) {
    await note({ type: "out", id, atMs: nowMs(), lost: reason === undefined ? null : lossOf(reason) });
  }
  await lease.release().catch(async (error: unknown) => {
    // A lease that was lost in the meantime was still in use when the exit was written.
    await note({ type: "out", id, atMs: nowMs(), lost: lossOf(error) });
  });
}

/** How long the resource is used. */
function sectionMs({ slowMs }: Lane): number {
  const drawn = chance.between(0, 1);
  if (slowMs !== undefined && drawn < SLOW_SHARE) return chance.between(...slowMs);
  return drawn < orders.longShare ? chance.between(300, 1_500) : Math.max(0, chance.between(-3, 8));
}

function lossOf(reason: unknown): string {
  return String((reason as { readonly reason?: unknown } | null)?.reason ?? reason);
}

async function work(lane: Lane): Promise<void> {
  const signal = lane.leaseMs > LONGEST_KILLED_MS ? AbortSignal.any([over.signal, dying.signal]) : over.signal;
  while (!signal.aborted) {
    await turn(lane, signal).catch(async (error: unknown) => {
      await note({ type: "failed", worker: number, build, text: String(error) });
    });
    await sleep(chance.between(1, 15));
  }
}

const working = LANES.flatMap((lane) => Array.from({ length: lane.callers }, () => ({ lane, done: work(lane) })));

async function stop(): Promise<void> {
  over.abort();
  await Promise.all(working.map(({ done }) => done));
  await holdfast.close();
  close();
  await log.quit();
  exit(0);
}

/** At an arbitrary moment, except while it holds locks that would be unavailable for too long. */
async function die(): Promise<void> {
  dying.abort();
  await Promise.all(working.filter(({ lane }) => lane.leaseMs > LONGEST_KILLED_MS).map(({ done }) => done));
  process.kill(process.pid, "SIGKILL");
}

process.on("message", (word) => void (word === "die" ? die() : stop()));
process.on("disconnect", () => exit(1));
process.send?.("ready");

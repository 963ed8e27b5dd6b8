/**
 * A process whose callers acquire locks in turn and record what they rely on.
 *
 * It gets its settings as a JSON argument and sends records (history/records.ts) until it is told to stop. Times are
 * on the machine's monotonic clock, which all processes share.
 */
import process, { argv, exit, hrtime } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { createHoldfast, type Lease, LeaseLostError } from "holdfast";
import { Cluster, Redis } from "ioredis";
import { createCluster, createSentinel } from "redis";
import type { HistoryRecord, Operation } from "../history/index.js";
import { chanceOf } from "./chance.js";

/** The settings of a worker. */
export interface Orders {
  readonly number: number;
  readonly library: "ioredis" | "node-redis";
  readonly topology: "sentinel" | "cluster";
  /** Ports of sentinels, or of the cluster's servers. */
  readonly ports: readonly number[];
  readonly masterName: string;
  readonly names: readonly string[];
  readonly callersPerName: number;
  readonly leaseMs: number;
  readonly grace: "auto" | "off";
  readonly seed: number;
}

/** A message from a worker: a record, the reason for a lost lease, or an unexpected error. */
export type Word =
  | { readonly record: HistoryRecord }
  | { readonly lostBecause: string; readonly leaseId: number }
  | { readonly error: string }
  | { readonly isDone: true };

const WAIT_MS = 60_000;
const LOOK_EVERY_MS = 25;
/** The share of holds that are short; the others outlast a failover. */
const SHORT_SHARE = 0.5;

const orders = JSON.parse(argv[2] ?? "{}") as Orders;
const chance = chanceOf(orders.seed * 100 + orders.number);
let isOver = false;
let lastId = orders.number * 1_000_000;

function nowMs(): number {
  return Number(hrtime.bigint() / 1_000n) / 1_000;
}

function tell(word: Word): void {
  process.send?.(word);
}

async function connect(): Promise<{ redis: object; close: () => unknown }> {
  const { library, topology, ports, masterName } = orders;
  const hosts = ports.map((port) => ({ host: "127.0.0.1", port }));
  if (library === "ioredis") {
    const redis = topology === "cluster" ? new Cluster(hosts) : new Redis({ sentinels: hosts, name: masterName });
    redis.on("error", () => {});
    return { redis, close: () => redis.disconnect() };
  }
  const rootNodes = ports.map((port) => ({ url: `redis://127.0.0.1:${port}` }));
  const redis =
    topology === "cluster"
      ? createCluster({ rootNodes })
      : createSentinel({ name: masterName, sentinelRootNodes: hosts });
  redis.on("error", () => {});
  await redis.connect();
  return { redis, close: () => redis.destroy() };
}

const { redis, close } = await connect();
const holdfast = createHoldfast({ redis: redis as never, failoverGrace: orders.grace });

/** Holds until the planned time has passed or the lease has ended; records each renewal. */
async function hold(lease: Lease, base: { lockName: string; process: string; leaseId: number }): Promise<void> {
  const forMs =
    chance.between(0, 1) < SHORT_SHARE ? chance.between(10, 300) : chance.between(1_000, orders.leaseMs * 1.5);
  const untilMs = nowMs() + forMs;
  let toldMs = 0;
  while (nowMs() < untilMs && !isOver) {
    const atMs = nowMs();
    const validForMs = lease.validForMs();
    const isHeld = validForMs > 0;
    const validUntilMs = atMs + validForMs;
    if (!isHeld || validUntilMs > toldMs + 5) {
      tell({ record: { type: "held", atMs, ...base, isHeld, token: lease.token, validUntilMs } });
      toldMs = validUntilMs;
    }
    if (!isHeld) return;
    await sleep(LOOK_EVERY_MS);
  }
}

async function turn(lockName: string): Promise<void> {
  lastId += 1;
  const id = lastId;
  const { leaseMs } = orders;
  const common = { type: "operation", process: `w${orders.number}`, incarnation: 1, lockName, kind: "mutex" } as const;
  const operation = (more: Omit<Operation, keyof typeof common>): void => tell({ record: { ...common, ...more } });
  const callMs = nowMs();
  let lease: Lease;
  try {
    lease = await holdfast.mutex(lockName).acquire({ leaseMs, waitMs: WAIT_MS, fairness: "strict" });
  } catch (error) {
    if (!isOver) tell({ error: `acquire of ${lockName} after ${Math.round(nowMs() - callMs)} ms: ${String(error)}` });
    return;
  }
  const returnMs = nowMs();
  const { token, owner } = lease;
  const granted = { id, leaseId: id, owner, token };
  const args = { leaseMs, waitMs: WAIT_MS };
  const validUntilMs = returnMs + lease.validForMs();
  operation({ ...granted, verb: "acquire", args, callMs, returnMs, outcome: "ok", validUntilMs });
  const base = { lockName, process: common.process, leaseId: id };
  lease.signal.addEventListener("abort", () => {
    tell({ record: { type: "lost", atMs: nowMs(), ...base } });
    const { reason } = lease.signal;
    tell({ lostBecause: reason instanceof LeaseLostError ? reason.reason : String(reason), leaseId: id });
  });
  await hold(lease, base);
  lastId += 1;
  const release = { ...granted, id: lastId, verb: "release", args: {}, callMs: nowMs(), validUntilMs: null } as const;
  const outcome = await lease.release().then(
    (word) => (word === "released" ? "ok" : "no"),
    (error: unknown) => (error instanceof LeaseLostError ? "no" : "info"),
  );
  const refusal = outcome === "no" ? ({ refusal: "not-owner" } as const) : {};
  operation({ ...release, returnMs: nowMs(), outcome, ...refusal });
}

async function work(lockName: string): Promise<void> {
  while (!isOver) {
    await turn(lockName);
    await sleep(chance.between(1, 20));
  }
}

process.on("message", () => {
  isOver = true;
  // Callers that still wait are ignored.
  setTimeout(() => void end(), orders.leaseMs);
});
process.on("disconnect", () => exit(1));

async function end(): Promise<void> {
  await holdfast.close().catch(() => {});
  await close();
  tell({ isDone: true });
  setTimeout(() => exit(0), 100);
}

await Promise.all(orders.names.flatMap((name) => Array.from({ length: orders.callersPerName }, () => work(name))));

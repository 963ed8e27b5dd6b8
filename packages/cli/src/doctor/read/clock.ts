/** Reads the server's clock and measures how long that takes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ClockFacts, LatencyFacts } from "../facts.js";
import type { Link } from "./link.js";

/** One reading of the server's clock. */
export interface ClockReading {
  readonly serverMs: number;
  /** The time by `performance.now()` in the middle of the round trip. */
  readonly clientMs: number;
  readonly wallMs: number;
  readonly roundTripMs: number;
}

/** The number of readings. Only the one with the shortest round trip counts. */
const READINGS = 5;
const APART_MS = 200;
const ROUND_TRIPS = 200;
/** Share of the time that measuring the latency may take, so that a slow connection leaves time for all other facts. */
const SHARE_OF_LATENCY = 0.4;

async function readTime({ redis }: Link): Promise<ClockReading> {
  const sentAtMs = performance.now();
  const wallMs = Date.now();
  const answer = await redis.call("TIME");
  const roundTripMs = performance.now() - sentAtMs;
  const [seconds = 0, micros = 0] = (answer as unknown[]).map(Number);
  return {
    serverMs: seconds * 1_000 + micros / 1_000,
    clientMs: sentAtMs + roundTripMs / 2,
    wallMs: wallMs + roundTripMs / 2,
    roundTripMs,
  };
}

/** Takes several readings and returns the one with the shortest round trip. @throws Error  TIME is refused */
export async function startClock(link: Link): Promise<ClockReading> {
  let best = await readTime(link);
  for (let at = 1; at < READINGS; at += 1) {
    const next = await readTime(link);
    if (next.roundTripMs < best.roundTripMs) best = next;
  }
  return best;
}

/** Takes the second reading, at least 200 ms after the first. */
export async function readClock(link: Link, start: ClockReading): Promise<ClockFacts> {
  await sleep(Math.max(0, APART_MS - (performance.now() - start.clientMs)));
  const end = await readTime(link);
  return {
    offsetMs: start.serverMs - start.wallMs,
    // Adds 1 ms because the local wall clock has a resolution of whole milliseconds.
    uncertaintyMs: start.roundTripMs / 2 + 1,
    serverRanMs: end.serverMs - start.serverMs,
    clientRanMs: end.clientMs - start.clientMs,
  };
}

/** Measures round trips one after the other, and fewer of them on a slow connection. */
export async function readLatency(link: Link): Promise<LatencyFacts> {
  const startMs = performance.now();
  const endAtMs = startMs + (link.endAtMs - startMs) * SHARE_OF_LATENCY;
  const tookMs: number[] = [];
  while (tookMs.length < ROUND_TRIPS && (tookMs.length === 0 || performance.now() < endAtMs)) {
    tookMs.push((await readTime(link)).roundTripMs);
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  const rank = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { count: sorted.length, p50Ms: rank(0.5), p99Ms: rank(0.99), maxMs: rank(1) };
}

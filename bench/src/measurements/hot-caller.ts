/** One process of the hot-key measurement: does what the parent orders, until the parent lets go of it. */
import { openSync } from "node:fs";
import { setImmediate as yieldOnce } from "node:timers/promises";
import type { Contestant } from "../adapters/adapter.js";
import { ADAPTERS } from "../adapters/all.js";
import { readValue, writeValue } from "./guarded-value.js";

/** What the parent sends. */
export interface Order {
  readonly seconds: number;
  /** Whether each section counts the guarded value up, in place of being empty. */
  readonly guarded: boolean;
}

/** What the parent gets. */
export interface Result {
  /** Sections that each caller began before the time was over. */
  readonly sections: readonly number[];
  /** All sections entered, also by those who still stood in the queue when the time was over. */
  readonly entered: number;
  /** Waits that went on after the end count in full: whoever starves is not left out. */
  readonly longestWaitMs: number;
}

const HOT = "hot";
const [adapterName, connection = "", callers, guardedPath = ""] = process.argv.slice(2);
const adapter = ADAPTERS.find(({ name }) => name === adapterName);
if (adapter === undefined) throw new Error(`there is no adapter ${adapterName}`);
const file = openSync(guardedPath, "r+");
const contestant = await adapter.open(JSON.parse(connection));

process.on("message", (order: Order) => {
  obey(order).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => {
  contestant.close().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});

async function obey({ seconds, guarded }: Order): Promise<Result> {
  const endAtMs = performance.now() + seconds * 1_000;
  const section = guarded ? countUp : undefined;
  const results = await Promise.all(Array.from({ length: Number(callers) }, () => call(contestant, endAtMs, section)));
  return {
    sections: results.map(({ inTime }) => inTime),
    entered: results.reduce((total, { entered }) => total + entered, 0),
    longestWaitMs: Math.max(...results.map(({ longestWaitMs }) => longestWaitMs)),
  };
}

async function call(
  locks: Contestant,
  endAtMs: number,
  section: (() => Promise<void>) | undefined,
): Promise<{ inTime: number; entered: number; longestWaitMs: number }> {
  let inTime = 0;
  let entered = 0;
  let longestWaitMs = 0;
  for (let askedAtMs = performance.now(); askedAtMs < endAtMs; askedAtMs = performance.now()) {
    const held = await locks.acquire(HOT);
    const grantedAtMs = performance.now();
    entered += 1;
    if (grantedAtMs < endAtMs) inTime += 1;
    longestWaitMs = Math.max(longestWaitMs, grantedAtMs - askedAtMs);
    if (section !== undefined) await section();
    await held.release();
  }
  return { inTime, entered, longestWaitMs };
}

async function countUp(): Promise<void> {
  const value = readValue(file);
  await yieldOnce();
  writeValue(file, value + 1);
}

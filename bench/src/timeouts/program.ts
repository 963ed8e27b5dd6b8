/** A process in which many waits time out in the same millisecond. Measures its event loop's stall and what it sends. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { argv } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { AcquireTimeoutError, createHoldfast, type Holdfast, type Lock } from "holdfast";
import type { Redis } from "ioredis";
import { newIoredis } from "../adapters/client.js";

/** How the callers wait. */
export type Kind = "mutex" | "mutex, strict" | "semaphore";

/** The result of one run. */
export interface Stampede {
  /** The longest delay of the event loop after the deadline, in ms. */
  readonly stallMs: number;
  /** Script calls that the server received since shortly before the deadline. */
  readonly scriptCalls: number;
  /** Time from the deadline until the last caller got its error, in ms. */
  readonly lastMs: number;
  /** The number of callers whose error names the holder. */
  readonly told: number;
  /** Whether the process lost another lease, one of 2 s. */
  readonly isLeaseLost: boolean;
}

const NAME = "stampede";
const LEASE_MS = 30_000;
const BRIEF_LEASE_MS = 2_000;
/** Waiters ask again every 3 to 5 s, which must not coincide with the deadline. */
const WAIT_MS = 4_500;
/** Callers that start in one turn. More would stall the event loop before the measurement. */
const SLICE = 250;
const SETTLED_MS = 300;

const [kind = "", port = "", callers = ""] = argv.slice(2);
const done = await stampede(kind as Kind, Number(port), Number(callers));
process.send?.(done);

function lockOf(holdfast: Holdfast, wanted: Kind): Pick<Lock, "acquire"> {
  return wanted === "semaphore" ? holdfast.semaphore(NAME, { permits: 1 }) : holdfast.mutex(NAME);
}

async function scriptCallsOf(control: Redis): Promise<number> {
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await control.info("commandstats"))?.[1] ?? 0);
}

async function stampede(wanted: Kind, serverPort: number, count: number): Promise<Stampede> {
  const connection = { port: serverPort, autoPipelining: false, leaseMs: LEASE_MS };
  const [redis, control] = [await newIoredis(connection), await newIoredis(connection)];
  const [holdfast, other] = [createHoldfast({ redis }), createHoldfast({ redis: control })];
  await lockOf(other, wanted).acquire({ leaseMs: 10 * LEASE_MS });
  const bystander = await holdfast.mutex("bystander").acquire({ leaseMs: BRIEF_LEASE_MS });

  const endsAtMs = performance.now() + WAIT_MS;
  let told = 0;
  const ends: Promise<void>[] = [];
  const fairness = wanted === "mutex, strict" ? ({ fairness: "strict" } as const) : {};
  while (ends.length < count) {
    const waitMs = Math.ceil(endsAtMs - performance.now());
    if (waitMs <= 0) throw new Error("this machine is too busy: the deadline came before all callers waited");
    const waiting = lockOf(holdfast, wanted).acquire({ waitMs, ...fairness });
    ends.push(
      waiting.then(
        () => {},
        (error: unknown) => {
          if (error instanceof AcquireTimeoutError && error.holder?.pid === process.pid) told += 1;
        },
      ),
    );
    if (ends.length % SLICE === 0) await sleep(1);
  }

  await sleep(Math.max(0, endsAtMs - SETTLED_MS - performance.now()));
  const before = await scriptCallsOf(control);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await Promise.all(ends);
  const lastMs = performance.now() - endsAtMs;
  await sleep(SETTLED_MS);
  delay.disable();
  const scriptCalls = (await scriptCallsOf(control)) - before;
  const isLeaseLost = bystander.signal.aborted;
  await Promise.all([holdfast.close(), other.close()]);
  redis.disconnect();
  control.disconnect();
  return { stallMs: delay.max / 1e6, scriptCalls, lastMs, told, isLeaseLost };
}

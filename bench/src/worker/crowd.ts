/**
 * Many callers on one name, in one of several processes. Records every section, so that those of all processes can be
 * compared.
 */
import { setTimeout as sleep, setImmediate as yieldOnce } from "node:timers/promises";
import type { Contestant } from "../adapters/adapter.js";
import { machineMs } from "./clock.js";
import type { Crowd, CrowdDone } from "./orders.js";
import { SectionLog } from "./section-log.js";

/** Starts immediately, so that the time before the measurement is the warm-up. */
export async function crowd(contestant: Contestant, order: Crowd): Promise<CrowdDone> {
  const { lock, callers, sectionMs, fromMs, untilMs, checkUntilMs } = order;
  const log = new SectionLog();
  const waitingSince = new Float64Array(callers).fill(Number.NaN);
  const section = (startedAtMs: number): Promise<void> | undefined => {
    if (sectionMs > 0) return sleep(sectionMs);
    return startedAtMs >= untilMs ? yieldOnce() : undefined;
  };
  const call = async (caller: number): Promise<void> => {
    for (let askedAtMs = machineMs(); askedAtMs < checkUntilMs; askedAtMs = machineMs()) {
      waitingSince[caller] = askedAtMs;
      const held = await contestant.acquire(lock);
      const startedAtMs = machineMs();
      waitingSince[caller] = Number.NaN;
      await section(startedAtMs);
      log.add(caller, askedAtMs, startedAtMs, machineMs());
      await held.release();
    }
  };
  let failure: unknown;
  const calls = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller))).catch((error: unknown) => {
    failure = error;
  });

  await until(fromMs);
  const before = process.cpuUsage();
  await until(untilMs);
  const { user, system } = process.cpuUsage(before);
  const waitingSinceMs = [...waitingSince].filter((sinceMs) => !Number.isNaN(sinceMs));
  // A caller that still waits at the end may wait for long, because no other caller is left to wake it.
  await Promise.race([calls, until(checkUntilMs)]);
  if (failure !== undefined) throw failure;
  return { sections: log.toArray(), waitingSinceMs, processorUs: user + system };
}

async function until(atMs: number): Promise<void> {
  const leftMs = atMs - machineMs();
  if (leftMs > 0) await sleep(leftMs);
}

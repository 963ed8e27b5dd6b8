/** Signals to patient waiters while a fault strikes: none of them may be lost (judging/signals.ts). */
import { POLL_MS } from "./judging/grounds.js";
import type { Client, Stage } from "./stage.js";

const PAUSE_MS = 50;
/** Long enough to poll twice after the last signal, whatever was lost. */
const PATIENCE_MS = 3 * POLL_MS;
const SIGNALS_FOR_MS = 0.8 * POLL_MS;

/** No client polls sooner, so a client that continues before this time was notified. */
const UNTOLD_MS = 0.8 * POLL_MS;

/**
 * Signals waiters on a new name, one after the other.
 *
 * @returns what is wrong if no fault strikes meanwhile, including a waiter that only found out by polling; null if that
 * is unknown
 */
export async function signal(
  stage: Stage,
  first: Client,
  others: readonly Client[],
  lockName: string,
): Promise<string | undefined | null> {
  // A client that is killed meanwhile reports nothing.
  const askedMs = stage.nowMs();
  const waits = others.map(async (client) => {
    const end = await client.condition(lockName, "wait", PATIENCE_MS).catch(() => undefined);
    return { isOn: end?.outcome === "ok", atMs: stage.nowMs() };
  });
  const endMs = stage.nowMs() + SIGNALS_FOR_MS;
  let moved = 0;
  while (moved < others.length && stage.nowMs() < endMs) {
    moved += (await first.condition(lockName, "signal", POLL_MS).catch(() => ({ moved: 0 }))).moved;
    await stage.sleep(PAUSE_MS);
  }
  // A signal whose reply was lost has let a waiter continue too, so no waiter may be left for the next signal.
  const gaveMs = stage.nowMs();
  const ends = await Promise.all(waits);
  if (moved < others.length) return null;
  const stuck = ends.findIndex(({ isOn }) => !isOn);
  if (stuck >= 0) return `"${lockName}": ${others[stuck]?.name} was signalled, but did not continue`;
  if (gaveMs > askedMs + POLL_MS / 2) return null;
  const late = ends.findIndex(({ atMs }) => atMs > askedMs + UNTOLD_MS);
  return late < 0 ? undefined : `"${lockName}": ${others[late]?.name} was signalled, but not notified`;
}

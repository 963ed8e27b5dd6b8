/** Signals to patient waiters while a fault strikes: none of them may be lost (judging/signals.ts). */
import { POLL_MS } from "./judging/grounds.js";
import type { Client, Stage } from "./stage.js";

const PAUSE_MS = 50;
/** Enough to look twice after the last signal, whatever was lost. */
const PATIENCE_MS = 3 * POLL_MS;
const SIGNALS_FOR_MS = 0.8 * POLL_MS;

/** Waiters on a new name are signalled one after the other. @returns what is wrong; null if it cannot be told */
export async function signal(
  stage: Stage,
  first: Client,
  others: readonly Client[],
  lockName: string,
): Promise<string | undefined | null> {
  // Who is killed meanwhile says nothing any more.
  const waits = others.map((client) => client.condition(lockName, "wait", PATIENCE_MS).catch(() => undefined));
  const endMs = stage.nowMs() + SIGNALS_FOR_MS;
  let moved = 0;
  while (moved < others.length && stage.nowMs() < endMs) {
    moved += (await first.condition(lockName, "signal", POLL_MS).catch(() => ({ moved: 0 }))).moved;
    await stage.sleep(PAUSE_MS);
  }
  // A signal whose answer was lost has let somebody go on as well, and leaves nobody for another.
  const ends = await Promise.all(waits);
  if (moved < others.length) return null;
  const stuck = ends.findIndex((end) => end?.outcome !== "ok");
  return stuck < 0 ? undefined : `"${lockName}": ${others[stuck]?.name} was signalled, and did not go on`;
}

/**
 * Records the scripts that the library really sends, with a store that observes them.
 *
 * A search of any other text would prove something about a different program. The library need not export the scripts,
 * because a store sees all of them.
 */
import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Store } from "holdfast";
import { redlockAcquire, redlockConfirm, redlockRelease, serverLineage } from "holdfast/simulation";
import { lockManager } from "holdfast/web-locks";
import { baselineScripts } from "./baseline-scripts.js";
import { COMMANDS } from "./native-world.js";

/** Maps script names, as in their first lines, to sources; `0/` before a name means that of a protocol 0 client. */
export type ScriptTexts = ReadonlyMap<string, string>;

const WANTED = [
  "mutex/acquire",
  "mutex/extend",
  "mutex/release",
  "mutex/leave",
  "permits/acquire",
  "permits/extend",
  "permits/confirm",
  "permits/release",
  "permits/leave",
  "permits/reweigh",
  "condition/wait",
  "condition/signal",
  "condition/leave",
  "web-locks/steal",
  "pausing/pause",
] as const;

/** Uses the library in every way that sends one of the wanted scripts. @throws Error  a script was not sent */
export async function productionScripts(): Promise<ScriptTexts> {
  const texts = new Map<string, string>(await baselineScripts());
  for (const { name, source } of [redlockAcquire, redlockConfirm, redlockRelease]) texts.set(name, source);
  for (const [name, source] of COMMANDS) texts.set(name, source);
  texts.set(serverLineage.name, informed(serverLineage.source));
  const store = embedded();
  const recording: Store = {
    kind: store.kind,
    run(script, keys, args, timeoutMs) {
      texts.set(script.name, script.source);
      return store.run(script, keys, args, timeoutMs);
    },
    inbox: (channel, onMessage, timeoutMs) => store.inbox(channel, onMessage, timeoutMs),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  const holdfast = createHoldfast({ store: recording });
  try {
    const mutex = holdfast.mutex("seen");
    const held = await mutex.acquire();
    await held.extend(held.validForMs() > 0 ? 20_000 : 10_000);
    await mutex.acquire({ waitMs: 1 }).catch(() => {});
    const changed = mutex.condition("changed");
    await changed.signal(held);
    await changed.wait(held, { waitMs: 1 }).catch(() => {});
    await (await mutex.acquire()).release();
    await holdfast.pause("seen", { by: "the search", label: "to see the script" });
    await holdfast.resume("seen", { by: "the search" });

    const lock = holdfast.readWriteLock("seen");
    const writer = await lock.write.acquire();
    await writer.extend(20_000);
    await lock.write.acquire({ waitMs: 1 }).catch(() => {});
    await writer.downgrade();
    await writer.release();
    // Handed over, and confirmed before the caller is notified.
    const before = await lock.write.acquire();
    const waiting = lock.write.acquire();
    while ((await lock.write.inspect()).waiters.length === 0) await new Promise(setImmediate);
    await before.release();
    await (await waiting).release();
    await lockManager(holdfast).request("seen", { steal: true }, () => {});
  } finally {
    await holdfast.close();
  }
  const missing = WANTED.filter((name) => !texts.has(name));
  if (missing.length > 0) throw new Error(`the library did not send ${missing.join(", ")}`);
  return texts;
}

/** Replaces INFO, which the search has not: the run comes from a key, and no server was ever promoted. */
function informed(source: string): string {
  return source
    .replaceAll("redis.pcall('INFO', 'server')", "redis.call('GET', 'info')")
    .replaceAll("redis.pcall('INFO', 'replication')", "'master_replid2:0000'");
}

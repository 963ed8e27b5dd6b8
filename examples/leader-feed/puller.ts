/**
 * One of several pullers; only the leader pulls. If it runs as a separate process, it sends the items to its parent,
 * which has the archive.
 */
import { once } from "node:events";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { lead } from "@holdfast/recipes";
import { createHoldfast, type Election } from "holdfast";
import { Redis } from "ioredis";

/** The archive as a puller uses it. */
export interface RemoteArchive {
  position(): Promise<number>;
  add(item: number, term: number): Promise<boolean>;
}

/** A crashed leader is replaced after this time. */
const LEASE_MS = 300;

/** Campaigns, and pulls while it leads, until there are no more items. After a lost lease, it campaigns again. */
export async function pull(election: Election, name: string, archive: RemoteArchive, length: number): Promise<void> {
  const done = new AbortController();
  await lead(
    election,
    async ({ term, signal }) => {
      for (let item = await archive.position(); item < length; item += 1) {
        await pause(2); // fetches it
        // The next leader continues at the archive's position. The term lets the archive refuse a leader that was
        // replaced.
        if (signal.aborted || !(await archive.add(item, term))) return;
      }
      done.abort();
    },
    // With a random delay, the fastest process is not the leader after every restart.
    { value: name, label: name, leaseMs: LEASE_MS, delayMaxMs: 50, rejoin: true, signal: done.signal },
  );
}

/** A request of a puller to its parent. */
export interface Question {
  readonly ask: "position" | "add";
  readonly item?: number;
  readonly term?: number;
}

async function ask<Answer>(question: Question): Promise<Answer> {
  process.send?.(question);
  const [answer] = await once(process, "message");
  return answer as Answer;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , url = "", electionName = "", name = "", length = ""] = process.argv;
  const redis = new Redis(url);
  const holdfast = createHoldfast({ redis, clientName: name });
  const archive: RemoteArchive = {
    position: () => ask<number>({ ask: "position" }),
    add: (item, term) => ask<boolean>({ ask: "add", item, term }),
  };
  await pull(holdfast.election(electionName), name, archive, Number(length));
  await holdfast.close();
  redis.disconnect();
  process.disconnect();
}

/**
 * One of several pullers, of which the leader pulls. Started as a process of its own it talks to its parent, which
 * keeps the archive.
 */
import { once } from "node:events";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { lead } from "@holdfast/recipes";
import { createHoldfast, type Election } from "holdfast";
import { Redis } from "ioredis";

/** The archive, as a puller reaches it. */
export interface RemoteArchive {
  position(): Promise<number>;
  add(item: number, term: number): Promise<boolean>;
}

/** A leader that is dead for this long is succeeded. */
const LEASE_MS = 300;

/** Stands for election, and pulls whenever it leads, until there is nothing left; after the loss of its lease it stands again. */
export async function pull(election: Election, name: string, archive: RemoteArchive, length: number): Promise<void> {
  const done = new AbortController();
  await lead(
    election,
    async ({ term, signal }) => {
      for (let item = await archive.position(); item < length; item += 1) {
        await pause(2); // fetches it
        // Whoever leads next begins where the archive stands. The term is for those who have not noticed yet that they do not lead.
        if (signal.aborted || !(await archive.add(item, term))) return;
      }
      done.abort();
    },
    // The random delay keeps the fastest from being the leader after every restart.
    { value: name, label: name, leaseMs: LEASE_MS, delayMaxMs: 50, rejoin: true, signal: done.signal },
  );
}

/** What a puller asks its parent. */
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

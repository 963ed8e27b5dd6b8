/**
 * The number of commands that one waiter sends while it waits. Each waiter has its own server, and all of them wait at
 * the same time, because runs of ten seconds in turn would take long and nothing here depends on speed.
 */
import type { Adapter } from "../adapters/adapter.js";
import { Crew } from "../crew.js";
import { monitor } from "../monitor.js";
import { target } from "../results.js";
import { type Server, startServer } from "../server.js";
import { entriesOf, onePerWayToWait } from "./entries.js";
import type { Conditions, Prepared } from "./entry.js";
import type { Measurement } from "./measurement.js";

/** Long enough that the holder sends no renewals during the wait, because they would be counted. */
const LEASE_MS = 90_000;
const WARM_UP_SECONDS = 0.1;
/** Commands that clients send on a new connection, and those that this program sends. */
const NOT_COUNTED = /^(info|hello|client|auth|select|config|command|readonly)\b/;

export const waiting: Measurement = {
  name: "waiting",
  title: ({ seconds }) =>
    `commands that reach the server from one waiter in ${seconds} s, without those that open a connection`,
  seconds: 10,
  figures: [{ name: "commands", unit: "", digits: 0, better: "less" }],
  entries: (adapters) => entriesOf(adapters, prepare, onePerWayToWait),
  targets: (results) => [
    target("commands of one waiter in 10 s, cohort", results.median("holdfast", "commands"), { atMost: 3 }, "", 0),
    target(
      "commands of one waiter in 10 s, strict",
      results.median("holdfast/strict", "commands"),
      { atMost: 3 },
      "",
      0,
    ),
  ],
};

async function prepare({ name }: Adapter, { connection, seconds, repetitions }: Conditions): Promise<Prepared> {
  const servers = await Promise.all(Array.from({ length: repetitions }, () => startServer()));
  const crews: Crew[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(crews.map((crew) => crew.end()));
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    const holder = await Crew.start({ name, connection: { ...connection, ...own(servers[0]) }, processes: 1 });
    crews.push(holder);
    await holder.all(() => ({ task: "keep", ports: servers.map(({ port }) => port) }), 0);
    const counts: Promise<number>[] = [];
    for (const server of servers) {
      const waiter = await Crew.start({ name, connection: { ...connection, ...own(server) }, processes: 1 });
      crews.push(waiter);
      const count = countFor(waiter, server, seconds);
      count.catch(() => {}); // its run awaits it
      counts.push(count);
    }
    let next = 0;
    return {
      async run() {
        next += 1;
        return { values: [(await counts[next - 1]) ?? Number.NaN] };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function own(server: Server | undefined): { readonly port: number; readonly leaseMs: number } {
  return { port: server?.port ?? 0, leaseMs: LEASE_MS };
}

async function countFor(crew: Crew, { port }: Server, seconds: number): Promise<number> {
  // Excludes commands that a process sends only once, before its first lock.
  await crew.all(() => ({ task: "pairs", seconds: WARM_UP_SECONDS, parallel: 1 }), WARM_UP_SECONDS * 1_000);
  let commands = 0;
  const end = await monitor(port, (command, isNested) => {
    // Commands called by a script were not sent by a client.
    if (!isNested && !NOT_COUNTED.test(command)) commands += 1;
  });
  try {
    await crew.all(() => ({ task: "wait", seconds }), seconds * 1_000);
    return commands;
  } finally {
    end();
  }
}

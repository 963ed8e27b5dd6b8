/**
 * What it costs to renew one lease without the library, in three ways: the script for one lease, the script for many, and
 * the command of newer servers. The processor time of server and client is measured separately, because a way that saves
 * time on one may cost time on the other.
 */
import type { Redis } from "ioredis";
import { newIoredis } from "../adapters/client.js";
import { type Renewals, renewalsOf } from "../adapters/renewals.js";
import type { Call } from "../adapters/scripts.js";
import { target } from "../results.js";
import { processorOf } from "../server.js";
import type { Entry, Run } from "./entry.js";
import type { Measurement } from "./measurement.js";

const LEASES = 20_000;
/** The number of leases renewed at a time, in as many requests as needed. */
const AT_A_TIME = 1_280;
/** The rest of a lease when it is renewed. */
const LEFT_MS = 10_000;
const US_PER_SECOND = 1e6;

const ALONE = "mutex/extend";
const TOGETHER = "mutex/renew";
const COMMAND = "SET IFEQ";

/** Sends the requests that renew `AT_A_TIME` leases, beginning with lease `first`, and returns the replies. */
type Send = (client: Redis, renewals: Renewals, first: number) => readonly Promise<unknown>[];

/** Each way, and its reply for a renewed lease. */
const WAYS: Readonly<Record<string, { readonly send: Send; readonly reply: unknown }>> = {
  [ALONE]: {
    send: (client, { alone }, first) => alone.slice(first, first + AT_A_TIME).map((call) => sent(client, call)),
    reply: 1,
  },
  [TOGETHER]: {
    send: (client, { together }, first) => among(together, first).map((call) => sent(client, call)),
    reply: "1",
  },
  [COMMAND]: {
    send: (client, { alone, leaseMs }, first) =>
      alone
        .slice(first, first + AT_A_TIME)
        .map(({ lock, owner }) => client.call("SET", lock, owner, "IFEQ", owner, "PX", leaseMs)),
    reply: "OK",
  },
};

let renewals: Promise<Renewals> | undefined;

export const renewal: Measurement = {
  name: "renewal",
  title: () => "processor time to renew one lease, by the client without the library",
  seconds: 0,
  figures: [
    { name: "server", unit: "µs", digits: 2, better: "less" },
    { name: "client", unit: "µs", digits: 2, better: "less", isDrawn: true },
    { name: "both", unit: "µs", digits: 2, better: "less", isDrawn: true },
  ],

  entries: () => Object.keys(WAYS).map(entryOf),

  targets: (results) => [
    target("a lease renewed with others, server time", results.median(TOGETHER, "server"), { atMost: 1.5 }, "µs"),
    target(
      "a lease renewed with others, processor time of server and client",
      results.ratio(TOGETHER, COMMAND, "both"),
      { atMost: 1 },
      `× ${COMMAND}`,
    ),
  ],
};

function entryOf(name: string): Entry {
  return {
    name,
    role: name === COMMAND ? "raw" : "own",
    ...(name === ALONE ? {} : { yardstick: ALONE }),
    async prepare({ connection, server: { control } }) {
      renewals ??= renewalsOf(LEASES);
      const [known, client] = await Promise.all([renewals, newIoredis(connection)]);
      const run = async (): Promise<Run> => {
        await put(client, known);
        const serverBefore = await processorOf(control);
        const clientBefore = process.cpuUsage();
        await renewAll(client, known, name);
        const { user, system } = process.cpuUsage(clientBefore);
        const serverUs = (await processorOf(control)) - serverBefore;
        const each = [serverUs * US_PER_SECOND, user + system].map((us) => us / LEASES);
        return { values: [...each, each.reduce((sum, us) => sum + us, 0)] };
      };
      try {
        for (const { script } of [known.alone[0], known.together[0]].filter((call) => call !== undefined))
          await client.script("LOAD", script.source);
        if (name === COMMAND) await checkCommand(client);
        await run(); // compiles the code
      } catch (error) {
        client.disconnect();
        throw error;
      }
      return { run, close: async () => client.disconnect() };
    },
  };
}

/** @throws Error  the server does not have the command */
async function checkCommand(client: Redis): Promise<void> {
  await client.call("SET", "renewal", "a", "IFEQ", "a", "PX", 1).catch((cause: unknown) => {
    throw new Error(`this server has no ${COMMAND}: Valkey has it from 8.1 on, and Redis from 8.4 on`, { cause });
  });
}

/** Writes the leases with little time left, so that a renewal extends each of them. */
async function put(client: Redis, { alone }: Renewals): Promise<void> {
  const pipeline = client.pipeline();
  for (const { lock, fence, owner, token } of alone) {
    pipeline.set(lock, owner, "PX", LEFT_MS);
    pipeline.set(fence, token, "PX", LEFT_MS + 600_000);
  }
  await pipeline.exec();
}

/** @throws Error  a lease was not renewed */
async function renewAll(client: Redis, known: Renewals, name: string): Promise<void> {
  const way = WAYS[name];
  if (way === undefined) throw new Error(`there is no renewal named ${name}`);
  for (let first = 0; first < LEASES; first += AT_A_TIME) {
    // In one write, as the library sends all requests of one turn of the event loop.
    client.stream.cork();
    const replies = way.send(client, known, first);
    client.stream.uncork();
    for (const reply of await Promise.all(replies)) {
      if (String(reply) !== String(way.reply)) throw new Error(`${name} did not renew a lease: ${String(reply)}`);
    }
  }
}

function sent(client: Redis, { script, keys, args }: Call): Promise<unknown> {
  return client.evalsha(script.sha1, keys.length, ...keys, ...args);
}

/** The requests whose first lease is among the `AT_A_TIME` leases that begin with `first`. */
function among(calls: readonly Call[], first: number): readonly Call[] {
  let lease = 0;
  return calls.filter(({ keys }) => {
    const isAmong = lease >= first && lease < first + AT_A_TIME;
    lease += keys.length / 2;
    return isAmong;
  });
}

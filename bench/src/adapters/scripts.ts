/**
 * The two scripts of an uncontended mutex, sent by the bare client: the cost of the protocol without the library. No
 * renewal, no queue, no deadline. The difference to `raw` is server time; the difference to `holdfast` is the library.
 */
import { randomBytes } from "node:crypto";
import type { Reply, Script, Store } from "holdfast";
import type { Adapter } from "./adapter.js";
import { newIoredis } from "./client.js";

/** One script call, as the library makes it. */
export interface Call {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

const NAME = "order";
/** A plausible token, as a server would reply. The release needs one. */
const TOKEN = 1_763_711_220_000_000;
const NOT_RUN = "it measures only free locks";

/** On ioredis. */
export const scripts: Adapter = {
  name: "holdfast/scripts",
  role: "own",
  client: "ioredis",
  settings: "the scripts that holdfast sends for a free mutex, sent by the client without the library",
  onlyFree: NOT_RUN,
  async open(connection) {
    const [acquire, release] = await callsOfAPair();
    const client = await newIoredis(connection);
    const learn = ({ script }: Call): Promise<unknown> => client.script("LOAD", script.source);
    await Promise.all([learn(acquire), learn(release)]);
    const reserved = Number(acquire.args[acquire.script.args.indexOf("block")]);
    const owners = randomBytes(12).toString("base64url");
    let last = 0;
    const send = (call: Call, name: string, given: Readonly<Record<string, string | number>>): Promise<unknown> => {
      const { sha1, args: names } = call.script;
      const args = names.map((arg, i) => String(given[arg] ?? call.args[i]));
      return client.evalsha(sha1, call.keys.length, ...call.keys.map((key) => key.replace(NAME, name)), ...args);
    };
    return {
      async acquire(name) {
        last += 1;
        const owner = `${owners}/${last}/${connection.leaseMs}/1`;
        const first = await send(acquire, name, { owner, leaseMs: connection.leaseMs });
        if (typeof first !== "number") throw new Error(`${name} is held, but should be free`);
        // An acquire returns the first token that it reserved, and a release compares the last one.
        const token = first + reserved - 1;
        return {
          async release() {
            if ((await send(release, name, { owner, token })) !== 1) throw new Error(`${name} was not released`);
          },
        };
      },
      async close() {
        await client.quit();
      },
    };
  },
};

/** The calls that the library sends for a free mutex, recorded from the library so that they stay current. */
export async function callsOfAPair(): Promise<[Call, Call]> {
  const { createHoldfast } = await import("holdfast");
  const calls: Call[] = [];
  const store: Store = {
    kind: "overheard",
    async run(script, keys, args): Promise<Reply> {
      if (script.name.startsWith("mutex/")) calls.push({ script, keys, args });
      return script.name === "mutex/acquire" ? TOKEN : 1;
    },
    inbox: async () => ({ close: async () => {} }),
    onReconnect: () => () => {},
    close: async () => {},
  };
  const holdfast = createHoldfast({ store, allowEviction: true });
  await (await holdfast.mutex(NAME).acquire()).release();
  await holdfast.close();
  const [acquire, release] = calls;
  if (acquire?.script.name !== "mutex/acquire" || release?.script.name !== "mutex/release" || calls.length !== 2) {
    throw new Error(`a free mutex should take two calls, not ${calls.map(({ script }) => script.name).join(", ")}`);
  }
  return [acquire, release];
}

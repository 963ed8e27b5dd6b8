import { execFileSync } from "node:child_process";
import { StoreError } from "holdfast";
import { beforeAll, describe, expect, it } from "vitest";
import { embedded, Keyspace, loadInterpreter } from "../src/index.js";
import { ManualNetwork, scriptOf } from "./manual-world.js";

const ANY_MS = 1000;
const INCR = scriptOf("return redis.call('INCR', KEYS[1])");
const PUBLISH = scriptOf("return redis.call('PUBLISH', ARGV[1], ARGV[2])");

beforeAll(loadInterpreter);

/** Two clients of one server that has loaded the scripts, on a network that the test controls. */
async function twoClients() {
  const network = new ManualNetwork();
  const keyspace = new Keyspace({ scheduler: network });
  for (const { source } of [INCR, PUBLISH]) await keyspace.eval(source, ["n"], ["nowhere", ""]);
  await keyspace.eval("return redis.call('DEL', KEYS[1])", ["n"]);
  const [one, other] = [embedded({ keyspace }), embedded({ keyspace })];
  const publish = (message: string): Promise<unknown> => other.run(PUBLISH, [], ["news", message], ANY_MS);
  const heard: string[] = [];
  const listen = async () => {
    const inbox = one.inbox("news", (message) => heard.push(message), ANY_MS);
    await network.settle();
    return inbox;
  };
  /** Delivers everything on the network and then waits for the result. */
  const settled = async <Result>(promise: Promise<Result>): Promise<Result> => {
    const outcome = promise.catch(() => undefined);
    await network.settle();
    await outcome;
    return promise;
  };
  return { network, keyspace, one, other, publish, heard, listen, settled };
}

describe("running a script", () => {
  it("two clients of one keyspace see the same keys", async () => {
    const keyspace = new Keyspace();
    const [one, other] = [embedded({ keyspace }), embedded({ keyspace })];
    expect(await one.run(INCR, ["n"], [], ANY_MS)).toBe(1);
    expect(await other.run(INCR, ["n"], [], ANY_MS)).toBe(2);
    expect(await embedded().run(INCR, ["n"], [], ANY_MS)).toBe(1);
  });

  it("a key prefix applies to keys but not to channels", async () => {
    const keyspace = new Keyspace();
    const prefixed = embedded({ keyspace, keyPrefix: "app:" });
    await prefixed.run(INCR, ["n"], [], ANY_MS);
    expect(keyspace.keys()).toEqual(["app:n"]);
    await prefixed.inbox("news", () => {}, ANY_MS);
    expect(await embedded({ keyspace }).run(PUBLISH, [], ["news", "x"], ANY_MS)).toBe(1);
  });

  it("the store loads a script again if the server has forgotten it", async () => {
    const keyspace = new Keyspace();
    const store = embedded({ keyspace });
    await store.run(INCR, ["n"], [], ANY_MS);
    keyspace.flushScripts();
    expect(await store.run(INCR, ["n"], [], ANY_MS)).toBe(2);
    keyspace.clear();
    expect(await store.run(INCR, ["n"], [], ANY_MS)).toBe(1);
  });

  it("an error in a script is a permanent StoreError, and the script may have run", async () => {
    const script = scriptOf("redis.call('SET', KEYS[1], 'x') return redis.call('INCR', KEYS[1])");
    const failure = await rejectionOf(embedded().run(script, ["n"], [], ANY_MS));
    expect(failure).toMatchObject({ mayHaveRun: true, transient: false });
    expect(String((failure as StoreError).cause)).toContain("ERR value is not an integer or out of range");
  });

  it.each(["return 'text'", "return nil", "return {{1}}"])(
    "a reply of a type that the Store interface does not allow is refused: %s",
    async (source) => {
      expect(await rejectionOf(embedded().run(scriptOf(source), [], [], ANY_MS))).toBeInstanceOf(StoreError);
    },
  );

  it("a list reply is flat and keeps null", async () => {
    const script = scriptOf("return {1, 'é', false, redis.status_reply('OK')}");
    expect(await embedded().run(script, [], [], ANY_MS)).toEqual([1, "é", null, "OK"]);
  });

  it("requests of one client run in the order in which they were made", async () => {
    const store = embedded();
    const answers = await Promise.all(Array.from({ length: 50 }, () => store.run(INCR, ["n"], [], ANY_MS)));
    expect(answers).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  });
});

describe("the network", () => {
  it("delivers no request and no reply until the scheduler runs", async () => {
    const { network, keyspace, one, settled } = await twoClients();
    let answer: unknown;
    const running = one.run(INCR, ["n"], [], ANY_MS).then((reply) => {
      answer = reply;
    });
    await new Promise(setImmediate);
    expect([keyspace.keys(), answer, network.waiting.length]).toEqual([[], undefined, 1]);
    await settled(running);
    expect([keyspace.keys(), answer]).toEqual([["n"], 1]);
  });

  it("delivers messages in order and counts receivers at publish time", async () => {
    const { one, other, publish, heard, listen, settled } = await twoClients();
    expect(await settled(publish("too early"))).toBe(0);
    const inbox = await listen();
    await settled(other.inbox("news", () => {}, ANY_MS));
    expect(await settled(Promise.all(["a", "b\0é"].map(publish)))).toEqual([2, 2]);
    expect(heard).toEqual(["a", "b\0é"]);
    const again = await settled(one.inbox("news", (message) => heard.push(`again ${message}`), ANY_MS));
    expect(await settled(publish("c"))).toBe(2);
    expect(heard.slice(2)).toEqual(["c", "again c"]);
    await settled(inbox.close());
    await settled(inbox.close());
    expect(await settled(publish("d"))).toBe(2);
    await settled(again.close());
    expect(await settled(publish("e"))).toBe(1);
    expect(heard.slice(4)).toEqual(["again d"]);
  });

  it("keeps a channel open if it is reopened while it closes", async () => {
    const { one, publish, heard, listen, settled } = await twoClients();
    const inbox = await listen();
    const closing = inbox.close();
    await settled(one.inbox("news", (message) => heard.push(message), ANY_MS));
    await closing;
    expect(await settled(publish("a"))).toBe(1);
    expect(heard).toEqual(["a"]);
  });
});

describe("a dropped connection", () => {
  it("fails pending calls, which may have run", async () => {
    const { one, keyspace, settled } = await twoClients();
    const failure = rejectionOf(one.run(INCR, ["n"], [], ANY_MS));
    await Promise.resolve();
    one.dropConnection();
    expect(await settled(failure)).toMatchObject({ mayHaveRun: true, transient: true });
    expect(keyspace.keys()).toEqual(["n"]);
    expect(await settled(one.run(INCR, ["n"], [], ANY_MS))).toBe(2);
  });

  it("loses messages until it resubscribes, and reports each reconnect", async () => {
    const { one, publish, heard, listen, settled, network } = await twoClients();
    await listen();
    const ready: string[] = [];
    const stop = one.onReconnect((connection) => ready.push(connection));
    const first = publish("on its way");
    // The server has run the request. The message and the reply are still in flight.
    for (const task of network.waiting.splice(0)) task();
    one.dropConnection();
    expect(await settled(first)).toBe(1);
    expect(heard).toEqual([]);
    expect(ready.sort()).toEqual(["commands", "inbox"]);
    expect(await settled(publish("after"))).toBe(1);
    expect(heard).toEqual(["after"]);
    stop();
    one.dropConnection("commands");
    await network.settle();
    expect(ready).toHaveLength(2);
  });

  it("immediately stops counting as a receiver", async () => {
    const { one, publish, listen, settled } = await twoClients();
    await listen();
    const published = publish("x");
    one.dropConnection("inbox");
    expect(await settled(published)).toBe(0);
  });

  it("fails a pending subscription, which is not retried later", async () => {
    const { one, publish, settled } = await twoClients();
    const failure = rejectionOf(one.inbox("news", () => {}, ANY_MS));
    one.dropConnection("inbox");
    expect(await settled(failure)).toMatchObject({ transient: true });
    expect(await settled(publish("x"))).toBe(0);
  });

  it("can drop again before it reconnects", async () => {
    const { one, publish, heard, listen, settled, network } = await twoClients();
    await listen();
    const ready: string[] = [];
    one.onReconnect((connection) => ready.push(connection));
    one.dropConnection("inbox");
    one.dropConnection("inbox");
    await network.settle();
    expect(ready).toEqual(["inbox"]);
    expect(await settled(publish("x"))).toBe(1);
    expect(heard).toEqual(["x"]);
  });
});

describe("a closed store", () => {
  it("rejects calls without running them, receives no messages and can be closed again", async () => {
    const { one, keyspace, publish, heard, listen, settled } = await twoClients();
    await listen();
    await one.close();
    await one.close();
    expect(await rejectionOf(one.run(INCR, ["n"], [], ANY_MS))).toMatchObject({ mayHaveRun: false, transient: false });
    expect(await rejectionOf(one.inbox("news", () => {}, ANY_MS))).toMatchObject({ mayHaveRun: false });
    expect(await settled(publish("x"))).toBe(0);
    expect([heard, keyspace.keys()]).toEqual([[], []]);
  });

  it("does not affect other clients of the server", async () => {
    const keyspace = new Keyspace();
    const store = embedded({ keyspace });
    await store.run(INCR, ["n"], [], ANY_MS);
    await store.close();
    expect(await embedded({ keyspace }).run(INCR, ["n"], [], ANY_MS)).toBe(2);
  });
});

function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => expect.fail(`resolved with ${String(value)}`),
    (error: unknown) => error,
  );
}

describe("an embedded server", () => {
  it("does not keep the process alive", () => {
    const program = `
      import { embedded } from "@holdfast/embedded";
      const store = embedded();
      await store.inbox("news", () => {}, 1000);
      await store.run(${JSON.stringify(INCR)}, ["n"], [], 1000);
      process.on("exit", () => console.log("left by itself"));`;
    // Runs the built package as users install it. The timeout ends a process that would never exit.
    const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      timeout: 15_000,
    });
    expect(output).toBe("left by itself\n");
  });
});

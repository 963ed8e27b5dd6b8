/** Holdfast writes and publishes the same keys and messages as a Java service, byte for byte. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { JAVA_MODEL } from "./java-model.js";
import { NODE } from "./node-side.js";
import { LOCK_TYPES, type LockType } from "./side.js";
import { givesBack, isRobbed, NAME_SHAPES, queues, readTogether, useWitness } from "./wire.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());
const told = useWitness(() => server.port);

describe.each(NAME_SHAPES)("with names like %s", (_label, shape) => {
  const both = async (type: LockType, story: typeof givesBack): Promise<void> => {
    const java = await told(JAVA_MODEL, type, story, shape);
    expect(java.join("\n")).toMatch(/NAME/);
    expect(await told(NODE, type, story, shape)).toEqual(java);
  };

  const asJava = LOCK_TYPES.filter((type) => type !== "spin" && type !== "write");
  test.each(asJava)("%s: acquire and release match Redisson", (type) => both(type, givesBack));
  test.each(["lock", "fenced", "fair"] as const)("%s: a force-release matches Redisson", (type) =>
    both(type, isRobbed),
  );
  test("read: two concurrent readers match Redisson", () => both("read", readTogether));
  test("fair: two waiters match Redisson", () => both("fair", queues));

  test.each([
    ["released", givesBack],
    ["force-released", isRobbed],
  ] as const)("write: %s, as in Redisson, plus a message for a waiter that does not sleep yet", async (_, story) => {
    const java = await told(JAVA_MODEL, "write", story, shape);
    const toAll = java.at(-1) ?? "";
    expect(toAll).toMatch(/^redisson_rwlock:.* 1$/);
    expect(await told(NODE, "write", story, shape)).toEqual([...java, toAll.replace(/1$/, "0")]);
  });

  test("read: a force-release matches Redisson, but also deletes the key of the hold", async () => {
    const java = await told(JAVA_MODEL, "read", isRobbed, shape);
    const at = java.indexOf("taken away:");
    expect(java.slice(at).filter((line) => line.startsWith("string"))).toHaveLength(1);
    const withoutHold = java.filter((line, i) => i < at || !line.startsWith("string"));
    expect(await told(NODE, "read", isRobbed, shape)).toEqual(withoutHold);
  });

  test("spin: matches Redisson, but also notifies waiters for the RLock of that name", async () => {
    const java = await told(JAVA_MODEL, "spin", givesBack, shape);
    expect(java).toEqual([
      "held:",
      expect.stringMatching(/^hash .*NAME.* = \["OWNER,1"\], for a time$/),
      "given back:",
    ]);
    const channel = (await told(JAVA_MODEL, "lock", givesBack, shape)).at(-1);
    expect(channel).toMatch(/redisson_lock__channel:.* 0$/);
    expect(await told(NODE, "spin", givesBack, shape)).toEqual([...java, channel]);
  });
});

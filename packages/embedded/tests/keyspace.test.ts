import { describe, expect, it } from "vitest";
import { Keyspace } from "../src/index.js";
import { ManualClock } from "./manual-world.js";

describe("a key with an expiry", () => {
  it("exists through its last millisecond and not after it", async () => {
    const clock = new ManualClock();
    const keyspace = new Keyspace({ clock });
    await keyspace.eval("return redis.call('SET', KEYS[1], 1, 'PX', 100)", ["a"]);
    expect(keyspace.pttl("a")).toBe(100);
    clock.advance(100);
    expect([keyspace.pttl("a"), keyspace.keys()]).toEqual([0, ["a"]]);
    clock.advance(1);
    expect([keyspace.pttl("a"), keyspace.keys(), keyspace.dump()]).toEqual([-2, [], []]);
    expect(await keyspace.eval("return redis.call('SET', KEYS[1], 2, 'NX')", ["a"])).toBe("OK");
    expect(keyspace.pttl("a")).toBe(-1);
  });

  it("does not expire during a script, however long the script runs", async () => {
    let nowUs = 1_000_000_000;
    const keyspace = new Keyspace({ clock: { nowUs: () => (nowUs += 60_000) } });
    const source = `redis.call('SET', KEYS[1], 1, 'PX', 1)
      local before = redis.call('TIME')
      for i = 1, 100 do redis.call('PTTL', KEYS[1]) end
      local after = redis.call('TIME')
      return {redis.call('EXISTS', KEYS[1]), redis.call('PTTL', KEYS[1]), after[2] - before[2]}`;
    expect(await keyspace.eval(source, ["a"])).toEqual([1, 1, 0]);
    expect(keyspace.keys()).toEqual([]);
  });

  it("is removed even if no client reads it again", async () => {
    const clock = new ManualClock();
    const keyspace = new Keyspace({ clock });
    const fill = "for i = 1, 2000 do redis.call('SET', KEYS[1] .. ARGV[1] .. i, 1, 'PX', 10) end";
    for (let round = 0; round < 5; round++) {
      await keyspace.eval(fill, ["k"], [`${round}:`]);
      clock.advance(11);
    }
    expect(keyspace.keys()).toEqual([]);
  });
});

describe("the time of a script", () => {
  it("comes from the keyspace's clock, to the microsecond", async () => {
    const keyspace = new Keyspace({ clock: { nowUs: () => 1_763_711_220_000_042 } });
    expect(await keyspace.eval("return redis.call('TIME')")).toEqual(["1763711220", "42"]);
  });

  it("never goes backward on the default clock", async () => {
    const keyspace = new Keyspace();
    const source = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]";
    const earlier = Number(await keyspace.eval(source));
    expect(Number(await keyspace.eval(source))).toBeGreaterThanOrEqual(earlier);
  });
});

describe("a dump", () => {
  it("shows every type in a uniform format", async () => {
    const keyspace = new Keyspace({ clock: new ManualClock() });
    await keyspace.eval(`
      redis.call('SET', 'string', 'é', 'PX', 500)
      redis.call('RPUSH', 'list', 'b', 'a')
      redis.call('SADD', 'set', 'b', 'a')
      redis.call('HSET', 'hash', 'g', '1', 'f', '2')
      redis.call('ZADD', 'zset', 2, 'a', 1.5, 'b')`);
    expect(keyspace.dump()).toEqual([
      { key: "hash", type: "hash", value: ["f", "2", "g", "1"], leftMs: -1 },
      { key: "list", type: "list", value: ["b", "a"], leftMs: -1 },
      { key: "set", type: "set", value: ["a", "b"], leftMs: -1 },
      { key: "string", type: "string", value: "é", leftMs: 500 },
      { key: "zset", type: "zset", value: ["b", "1.5", "a", "2"], leftMs: -1 },
    ]);
  });
});

describe("two keyspaces", () => {
  it("share nothing but the interpreter", async () => {
    const [one, other] = [new Keyspace(), new Keyspace()];
    await one.eval("return redis.call('SET', KEYS[1], 1)", ["a"]);
    expect(await other.eval("return redis.call('EXISTS', KEYS[1])", ["a"])).toBe(0);
    one.clear();
    expect(one.keys()).toEqual([]);
  });
});

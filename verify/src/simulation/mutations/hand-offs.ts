import { type Mutation, rewrite, rewriteAll } from "./mutation.js";

const HAND_OFF_MS = "waiter ~= self and string.match(waiter, ';(%d+)$')";

/** Mistakes in how the server handles a grant by message that was not confirmed. */
export const HAND_OFFS: readonly Mutation[] = [
  {
    name: "the script contains the short length of a hand-off",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: rewriteAll([
      HAND_OFF_MS,
      `waiter ~= self and (string.match(waiter, ';(%d+)$') or math.min(leaseMs, 300))`,
    ]),
  },
  {
    name: "a hand-off lasts for the whole lease",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["L6"],
    tampering: rewriteAll([HAND_OFF_MS, "nil"]),
  },
  {
    name: "a grant by an answer is as short as one by message",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: rewriteAll([HAND_OFF_MS, "string.match(waiter, ';(%d+)$')"]),
  },
  {
    name: "a release leaves the mark of a hand-off",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["L6"],
    tampering: rewrite("mutex/release", ["redis.call('DEL', KEYS[1], KEYS[4])", "redis.call('DEL', KEYS[1])"]),
  },
  {
    name: "a confirmation leaves the mark of a hand-off",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["L6"],
    tampering: rewrite("mutex/extend", ["  redis.call('DEL', KEYS[3])\n  return 1", "  return 1"]),
  },
  {
    name: "a client that never confirmed keeps its other places",
    profile: "stalls",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["L6"],
    tampering: rewrite("mutex/acquire", ["local isUnconfirmed = losePlaces(inbox)", "local isUnconfirmed"]),
  },
  {
    name: "a client that loses its places is not notified",
    profile: "stalls",
    seed: 1,
    bug: "hand-off",
    kind: "mutex",
    finds: ["L2", "X3"],
    tampering: rewrite("mutex/acquire", [
      "      redis.call('ZREM', KEYS[3], waiter)\n      notify(inbox .. client, '~' .. number)\n",
      "      redis.call('ZREM', KEYS[3], waiter)\n",
    ]),
  },
  {
    name: "a confirmation of permits leaves their mark",
    seed: 1,
    bug: "hand-off",
    kind: "semaphore",
    finds: ["L6"],
    tampering: rewrite("permits/confirm", ["    redis.call('HSET', KEYS[1], claim, confirmed(grant))\n", ""]),
  },
  {
    name: "an extension of permits leaves their mark",
    seed: 1,
    bug: "hand-off",
    kind: "semaphore",
    finds: ["L6"],
    tampering: rewrite("permits/extend", [
      "redis.call('HSET', KEYS[1], owner, string.sub(record, 1, -3))",
      "local _ = 0",
    ]),
  },
  {
    name: "a client that never confirmed its permits keeps its other places",
    profile: "stalls",
    seed: 1,
    bug: "hand-off",
    kind: "semaphore",
    finds: ["L6"],
    tampering: rewriteAll(["    if client == one and left > 0 then", "    if false then"]),
  },
  {
    name: "a client that loses its places in the queue for permits is not notified",
    profile: "stalls",
    seed: 1,
    bug: "hand-off",
    kind: "semaphore",
    finds: ["L2", "X3"],
    tampering: rewriteAll([
      "        redis.call('ZREM', KEYS[5], waiter)\n        notify(inbox .. client, '~' .. number)\n",
      "        redis.call('ZREM', KEYS[5], waiter)\n",
    ]),
  },
  {
    name: "a client that has lost its place in the queue for permits cannot get a new one",
    profile: "stalls",
    seed: 1,
    bug: "hand-off",
    kind: "semaphore",
    finds: ["L2"],
    tampering: rewrite("permits/acquire", [
      "if pause and ARGV[4] ~= '2' and not isQueued then",
      "if (pause or ARGV[4] == '2') and not isQueued then",
    ]),
  },
];

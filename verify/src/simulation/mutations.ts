/**
 * Mistakes on purpose in the production scripts and in what the engine stands on, each of which the simulation must
 * find. A mutation that does not apply any more fails the test: then the code has moved on, and so must this list.
 */
import { type Script, type Store, StoreError } from "holdfast";
import type { Runtime } from "holdfast/simulation";
import { type Change, rewritten } from "./rewriting.js";
import type { Tampering } from "./world.js";

/** One mistake. */
export interface Mutation {
  readonly name: string;
  /** The first seed that finds it, as far as is known: a search may begin here. */
  readonly seed: number;
  /** The bug that it restates, if it is one of the table in the reference. */
  readonly bug: string;
  readonly kind: string;
  /** Properties of which one is violated. */
  readonly finds: readonly string[];
  readonly tampering: Tampering;
  /** Whether it is looked for in runs in which processes are killed and nothing else goes wrong. */
  readonly onlyKills?: true;
}

/** The script with a part of its text replaced. @throws TamperingError  the part is not in it */
function rewrite(name: string, ...changes: readonly Change[]): Tampering {
  return { script: (script: Script) => (script.name === name ? rewritten(script, changes) : script) };
}

function onRuntime(change: (runtime: Runtime) => Partial<Runtime>): Tampering {
  return { runtime: (runtime) => ({ ...runtime, ...change(runtime) }) };
}

function onStore(run: (store: Store, ...call: Parameters<Store["run"]>) => ReturnType<Store["run"]>): Tampering {
  return {
    store: (store) => ({
      kind: store.kind,
      run: (...call) => run(store, ...call),
      inbox: (...call) => store.inbox(...call),
      onReconnect: (listener) => store.onReconnect(listener),
      close: () => store.close(),
    }),
  };
}

/** All of them. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "a release compares no owner",
    seed: 10,
    bug: "B17",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: rewrite("mutex/release", ["if holder == owner", "if holder"]),
  },
  {
    name: "leaving compares no owner",
    seed: 1,
    bug: "B17",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: rewrite("mutex/leave", ["if redis.call('GET', KEYS[1]) == owner", "if redis.call('GET', KEYS[1])"]),
  },
  {
    name: "a refused release shortens the lease of whoever holds",
    seed: 1,
    bug: "B17",
    kind: "mutex",
    finds: ["S3"],
    tampering: rewrite("mutex/release", [
      "return whyLost(holder, token)",
      "if holder then redis.call('PEXPIRE', KEYS[1], 20) end\nreturn whyLost(holder, token)",
    ]),
  },
  {
    name: "a refused extension of permits takes those of another",
    seed: 1,
    bug: "B24",
    kind: "semaphore",
    finds: ["S3"],
    tampering: rewrite("permits/extend", [
      "return whyLost(nil, token)",
      "redis.call('ZPOPMAX', KEYS[3])\nreturn whyLost(nil, token)",
    ]),
  },
  {
    name: "a waiter is not told when the lease before it ends",
    seed: 7,
    bug: "L1",
    kind: "mutex",
    finds: ["L1"],
    onlyKills: true,
    tampering: rewrite("mutex/acquire", [
      "return {enqueue == '1' and 0 or 1, redis.call('PTTL', KEYS[1]), now}",
      "return {enqueue == '1' and 0 or 1, -1, now}",
    ]),
  },
  {
    name: "a lock is handed to a waiter that is gone",
    seed: 39,
    bug: "B45",
    kind: "mutex",
    finds: ["L6"],
    onlyKills: true,
    tampering: rewrite("mutex/release", ["redis.call('PUBSUB', 'NUMSUB', channel)[2] ~= 0", "true"]),
  },
  {
    name: "who gives up its wait keeps the signal that it was given",
    seed: 1,
    bug: "condition",
    kind: "condition",
    finds: ["L3"],
    tampering: rewrite("condition/leave", ["    signalNext(inbox, 1)", "    signalNext(inbox, 0)"]),
  },
  {
    name: "who is signalled waits in no queue",
    seed: 1,
    bug: "condition",
    kind: "condition",
    finds: ["L3"],
    tampering: rewrite("condition/signal", ["redis.call('ZADD', KEYS[3], latest + 1, waiter)", ""]),
  },
  {
    name: "a signal to all reaches the first",
    seed: 1,
    bug: "condition",
    kind: "condition",
    finds: ["L3"],
    tampering: rewrite("condition/signal", ["signalNext(inbox, tonumber(most))", "signalNext(inbox, 1)"]),
  },
  {
    name: "a writer that becomes a reader has a new token",
    seed: 1,
    bug: "F3",
    kind: "read-write-lock",
    finds: ["F3"],
    tampering: rewrite("permits/reweigh", ["if more > 0 then\n  latest", "if more ~= 0 then\n  latest"]),
  },
  {
    name: "tokens outgrow what a number keeps exactly",
    seed: 1,
    bug: "F4",
    kind: "mutex",
    finds: ["F4"],
    tampering: rewrite("mutex/acquire", ["time[1] * 1000000 + time[2]", "time[1] * 10000000 + time[2]"]),
  },
  {
    name: "an acquire passes the queue by",
    seed: 11,
    bug: "X3",
    kind: "mutex",
    finds: ["X3"],
    tampering: rewrite("mutex/acquire", [
      "redis.call('EXISTS', KEYS[1], KEYS[3]) == 0",
      "redis.call('EXISTS', KEYS[1]) == 0",
    ]),
  },
  {
    name: "the newest waiter is next",
    seed: 5,
    bug: "X3",
    kind: "mutex",
    finds: ["X3"],
    tampering: rewrite("mutex/release", ["'ZPOPMIN'", "'ZPOPMAX'"]),
  },
  {
    name: "an extension makes an ended lease again",
    seed: 1,
    bug: "B26",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: rewrite("mutex/extend", [
      "  if redis.call('GET', KEYS[1]) ~= owner then\n    return false\n  end",
      "  redis.call('SET', KEYS[1], owner, 'PX', leaseMs)",
    ]),
  },
  {
    name: "a token is not above the last",
    seed: 1,
    bug: "B54",
    kind: "mutex",
    finds: ["F1", "F2"],
    tampering: rewrite("mutex/acquire", ["+ time[2] + block - 1", "+ block - 1"], ["last + block > top", "false"]),
  },
  {
    name: "a token is taken by the answer that repeats a lost one",
    seed: 10,
    bug: "B55",
    kind: "mutex",
    finds: ["F1", "F2", "F3", "S1"],
    tampering: rewrite("mutex/acquire", [
      "  return last - block + 1\nend",
      "  return redis.call('INCR', KEYS[2])\nend",
    ]),
  },
  {
    name: "a hold has no end",
    seed: 6,
    bug: "B52",
    kind: "mutex",
    finds: ["L2", "L4", "L7"],
    tampering: rewrite("mutex/acquire", [
      "redis.call('PSETEX', KEYS[1], leaseMs, owner)",
      "redis.call('SET', KEYS[1], owner)",
    ]),
  },
  {
    name: "a lease on the server is shorter than the caller was told",
    seed: 1,
    bug: "B38",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: rewrite("mutex/acquire", [
      "redis.call('PSETEX', KEYS[1], leaseMs, owner)",
      "redis.call('PSETEX', KEYS[1], math.floor(leaseMs * 0.6), owner)",
    ]),
  },
  {
    name: "permits are not counted together",
    seed: 1,
    bug: "X1",
    kind: "semaphore",
    finds: ["X1"],
    tampering: rewrite("permits/acquire", ["used + weight <= capacity", "weight <= capacity"]),
  },
  {
    name: "clocks run too slowly",
    seed: 2,
    bug: "A1",
    kind: "mutex",
    finds: ["S2", "S1"],
    tampering: onRuntime((runtime) => ({
      monotonicMs: () => runtime.monotonicMs() * 0.7,
      wallMs: () => runtime.wallMs() * 0.7,
    })),
  },
  {
    name: "nobody tells when a lease ends",
    seed: 1,
    bug: "B32",
    kind: "mutex",
    finds: ["S4"],
    tampering: onRuntime((runtime) => ({
      startTimer: (callback, delayMs, keepAlive) =>
        keepAlive ? runtime.startTimer(callback, delayMs, keepAlive) : { cancel: () => {} },
    })),
  },
  {
    name: "timers go on after the end",
    seed: 1,
    bug: "B33",
    kind: "mutex",
    finds: ["L7"],
    tampering: onRuntime((runtime) => ({
      startTimer(callback, delayMs, keepAlive) {
        const again = (): void => void runtime.startTimer(again, 1_000, false);
        const timer = runtime.startTimer(callback, delayMs, keepAlive);
        return {
          cancel() {
            timer.cancel();
            again();
          },
        };
      },
    })),
  },
  {
    name: "no answer to an acquire is taken for a yes",
    seed: 10,
    bug: "B09",
    kind: "mutex",
    finds: ["S5"],
    tampering: onStore((store, script, keys, args, timeoutMs) =>
      store.run(script, keys, args, timeoutMs).catch((error: unknown) => {
        if (script.name !== "mutex/acquire" || !(error instanceof StoreError)) throw error;
        return 1_763_711_220_000_000 + Number(String(args[0]).split("/")[1]);
      }),
    ),
  },
  {
    name: "no answer to an extension is taken for a yes",
    seed: 30,
    bug: "B29",
    kind: "mutex",
    finds: ["S1", "S2"],
    tampering: onStore((store, script, keys, args, timeoutMs) =>
      store.run(script, keys, args, timeoutMs).catch((error: unknown) => {
        if (script.name !== "mutex/extend" || !(error instanceof StoreError)) throw error;
        return 1;
      }),
    ),
  },
  {
    name: "no answer to a release is taken for a yes",
    seed: 3,
    bug: "B24",
    kind: "mutex",
    finds: ["S5"],
    tampering: onStore((store, script, keys, args, timeoutMs) =>
      store.run(script, keys, args, timeoutMs).catch((error: unknown) => {
        if (script.name !== "mutex/release" || !(error instanceof StoreError)) throw error;
        return 1;
      }),
    ),
  },
  {
    name: "who leaves stays in the queue",
    seed: 20,
    bug: "B21",
    kind: "mutex",
    finds: ["L4"],
    tampering: rewrite("mutex/leave", ["return redis.call('ZREM', KEYS[3], owner)", "return 1"]),
  },
  {
    name: "what is guarded checks no token",
    seed: 1,
    bug: "K2",
    kind: "mutex",
    finds: ["F5", "E1"],
    tampering: { unguarded: true },
  },
  {
    name: "no timer stands behind a message",
    seed: 3,
    bug: "B41",
    kind: "mutex",
    finds: ["L2", "L7"],
    tampering: onRuntime((runtime) => ({
      startTimer: (callback, delayMs, keepAlive) =>
        runtime.startTimer(callback, keepAlive && delayMs >= 100 ? 1e9 : delayMs, keepAlive),
    })),
  },
  {
    name: "a latch opens before its count is zero",
    seed: 1,
    bug: "latch",
    kind: "count-down-latch",
    finds: ["S1"],
    tampering: rewrite("count-down-latch/await", ["latch[1] == '0'", "latch[1] == '1'"]),
  },
  {
    name: "a barrier lets its parties pass under one number",
    seed: 1,
    bug: "barrier",
    kind: "barrier",
    finds: ["S1"],
    tampering: rewrite("barrier/arrive", ["(index - 1) / 131072", "0"], ["now, index - 1)", "now, 0)"]),
  },
  {
    name: "a barrier does not wait for its last party",
    seed: 1,
    bug: "barrier",
    kind: "barrier",
    finds: ["S1"],
    tampering: rewrite("barrier/arrive", ["if count < tonumber(parties) then", "if count < parties - 1 then"]),
  },
  {
    name: "a writer comes in among readers by an upgrade",
    seed: 5,
    bug: "X2",
    kind: "read-write-lock",
    finds: ["X1", "X2"],
    tampering: rewrite("permits/reweigh", ["used + more > capacity", "false"]),
  },
];

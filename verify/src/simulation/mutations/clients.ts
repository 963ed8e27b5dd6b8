import { type Store, StoreError } from "holdfast";
import type { Runtime } from "holdfast/simulation";
import type { Tampering } from "../tampering.js";
import type { Mutation } from "./mutation.js";

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

/** Mistakes in the session's dependencies, and in the protected resource. */
export const CLIENTS: readonly Mutation[] = [
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
    name: "the end of a lease is not reported",
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
    name: "timers continue after the end",
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
    name: "a missing reply to an acquire counts as a success",
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
    name: "a missing reply to an extension counts as a success",
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
    name: "a missing reply to a release counts as a success",
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
    name: "the protected resource checks no token",
    seed: 1,
    bug: "K2",
    kind: "mutex",
    finds: ["F5", "E1"],
    tampering: { unguarded: true },
  },
  {
    name: "no timer backs up a message",
    seed: 3,
    bug: "B41",
    kind: "mutex",
    finds: ["L2", "L7"],
    tampering: onRuntime((runtime) => ({
      startTimer: (callback, delayMs, keepAlive) =>
        runtime.startTimer(callback, keepAlive && delayMs >= 100 ? 1e9 : delayMs, keepAlive),
    })),
  },
];

/** Mistakes that are made outside the library's source: in the simulation's scripts, clocks and connections. */
import { createHash } from "node:crypto";
import type { Script, Store } from "holdfast";
import type { Runtime } from "holdfast/simulation";
import { MUTATIONS } from "../simulation/mutations.js";
import { rewritten } from "../simulation/rewriting.js";
import type { Tampering } from "../simulation/tampering.js";

function withSource(script: Script, source: string): Script {
  return { ...script, source, sha1: createHash("sha1").update(source).digest("hex") };
}

function withRun(store: Store, run: Store["run"]): Store {
  return {
    kind: store.kind,
    run,
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

/** The extension reads in one request and writes in the next. */
function extendInTwo(): Tampering {
  return {
    store: (store) =>
      withRun(store, async (script, keys, args, timeoutMs) => {
        if (script.name !== "mutex/extend") return store.run(script, keys, args, timeoutMs);
        const looking = withSource(script, "return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 3");
        const looked = await store.run(looking, keys, args, timeoutMs);
        if (looked !== 1) return looked;
        const writing = withSource(script, "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])\nreturn 1");
        return store.run(writing, keys, args, timeoutMs);
      }),
  };
}

const SERVER_TIME = "local now = time[1] * 1000000 + time[2]";

/** Permits end by the wall clock of the requesting client, which sends it along. */
function clientClocks(): Tampering {
  let latest: Runtime | undefined;
  const isOfPermits = ({ name }: Script): boolean => name.startsWith("permits/");
  return {
    runtime(runtime) {
      latest = runtime;
      return runtime;
    },
    script: (script) =>
      isOfPermits(script) ? rewritten(script, [[SERVER_TIME, "local now = tonumber(ARGV[#ARGV])"]]) : script,
    store(store) {
      // The world creates a process's clocks just before its connection to the server.
      const own = latest;
      return withRun(store, (script, keys, args, timeoutMs) => {
        const nowUs = Math.round((own?.wallMs() ?? 0) * 1_000);
        return store.run(script, keys, isOfPermits(script) ? [...args, nowUs] : args, timeoutMs);
      });
    },
  };
}

const OWN: Readonly<Record<string, () => Tampering>> = {
  "an extension in two requests": extendInTwo,
  "clocks of the clients": clientClocks,
};

/** Whether there is a tampering with this name. */
export function isKnown(name: string): boolean {
  return name in OWN || MUTATIONS.some((mutation) => mutation.name === name);
}

/** The tampering with this name, from the simulation or from this file. @throws Error  unknown name */
export function tamperingOf(name: string): Tampering {
  const tampering = OWN[name]?.() ?? MUTATIONS.find((mutation) => mutation.name === name)?.tampering;
  if (tampering === undefined) throw new Error(`there is no tampering ${JSON.stringify(name)}`);
  return tampering;
}

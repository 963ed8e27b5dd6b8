/**
 * Deliberate mistakes, for clients of the controls and for tests of the judges.
 *
 * A mistake changes what a store sends, so everything above it is production code. A mutation that no longer applies
 * throws, because the code has changed and the list must follow.
 */
import { type Script, type Store, StoreError } from "holdfast";
import { type Change, rewritten, TamperingError } from "../simulation/rewriting.js";

type Wrap = (store: Store) => Store;

/**
 * Counters that increment the stored value and restart if there is none, like INCR. They start at 1000, because a
 * bare 1 means a refusal in the scripts' replies.
 */
const PLAIN: Readonly<Record<string, readonly Change[]>> = {
  "mutex/acquire": [
    ["  local top = time[1] * 1000000 + time[2] + block - 1\n", "  local top = block + 999\n"],
    ["    last = time[1] * 1000000 + time[2] + block - 1\n", "    last = block + 999\n"],
  ],
  "multi-lock/acquire": [
    ["  local token = now\n", "  local token = 1000\n"],
    ["last >= now", "last >= 1000"],
  ],
  "redlock/acquire": [["  token = time[1] * 1000000 + time[2]\n", "  token = 1000\n"]],
};
/** The same for the hand-over part of a mutex, which several scripts include. */
const PLAIN_HAND_OFF: readonly Change[] = [
  ["      first = now\n      if last and last - now >= 0 then", "      first = 1000\n      if last then"],
];

const WRAPS: Readonly<Record<string, Wrap>> = {
  "plain-counter": (store) => onScripts(store, plain),
  "release-compares-no-owner": (store) =>
    onScripts(
      store,
      changing("mutex/release", [
        ["local isOurs = holder == owner\nif isOurs then\n", "local isOurs = holder\nif false then\n"],
      ]),
    ),
  "acquire-ignores-the-holder": (store) =>
    onScripts(
      store,
      changing("mutex/acquire", [
        ["if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4], KEYS[5]) == 0 then", "if true then"],
      ]),
    ),
  "voter-ignores-the-holder": (store) =>
    onScripts(store, changing("redlock/acquire", [["if holder and holder ~= owner then", "if false then"]])),
  "newest-waiter-first": (store) => onScripts(store, changing("mutex/release", [["'ZPOPMIN'", "'ZPOPMAX'"]])),
  "no-answer-is-yes": (store) =>
    wrapped(store, (script, keys, args, timeoutMs) =>
      store.run(script, keys, args, timeoutMs).catch((error: unknown) => {
        if (script.name !== "mutex/extend" || !(error instanceof StoreError)) throw error;
        return 1;
      }),
    ),
};

/** The names of all mutations. */
export const MUTATIONS: readonly string[] = Object.keys(WRAPS);

/** The store with these mutations. @throws RangeError  unknown name */
export function mutated(store: Store, names: readonly string[]): Store {
  return names.reduce((inner, name) => {
    const wrap = Object.hasOwn(WRAPS, name) ? WRAPS[name] : undefined;
    if (wrap === undefined) throw new RangeError(`there is no mutation ${name}; there are ${MUTATIONS.join(", ")}`);
    return wrap(inner);
  }, store);
}

function plain(script: Script): Script {
  const changes = Object.hasOwn(PLAIN, script.name) ? (PLAIN[script.name] ?? []) : [];
  const handsOver = script.source.includes("local function handOff(");
  const isMutex = script.name.startsWith("mutex/") || script.name.startsWith("multi-lock/");
  if (
    !isMutex &&
    changes.length === 0 &&
    !handsOver &&
    script.source.includes("'TIME'") &&
    script.replies.some(givesToken)
  )
    throw new TamperingError(`${script.name} issues tokens, but has no change for a plain counter`);
  return changes.length === 0 && !handsOver
    ? script
    : rewritten(script, [...changes, ...(handsOver ? PLAIN_HAND_OFF : [])]);
}

function givesToken({ values }: Script["replies"][number]): boolean {
  return values.includes("token");
}

function changing(name: string, changes: readonly Change[]): (script: Script) => Script {
  return (script) => (script.name === name ? rewritten(script, changes) : script);
}

function onScripts(store: Store, change: (script: Script) => Script): Store {
  const changed = new Map<string, Script>();
  return wrapped(store, (script, keys, args, timeoutMs) => {
    const known = changed.get(script.name) ?? change(script);
    changed.set(script.name, known);
    return store.run(known, keys, args, timeoutMs);
  });
}

/** The store with a different `run`. */
export function wrapped(store: Store, run: Store["run"]): Store {
  return {
    kind: store.kind,
    run,
    inbox: (channel, onMessage, timeoutMs) => store.inbox(channel, onMessage, timeoutMs),
    ...(store.shardInbox === undefined ? {} : { shardInbox: store.shardInbox.bind(store) }),
    ...(store.memory === undefined ? {} : { memory: store.memory }),
    ...(store.lineageKey === undefined ? {} : { lineageKey: store.lineageKey.bind(store) }),
    ...(store.confirmsGrants === undefined ? {} : { confirmsGrants: store.confirmsGrants }),
    ...(store.releasesNatively === undefined ? {} : { releasesNatively: store.releasesNatively.bind(store) }),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

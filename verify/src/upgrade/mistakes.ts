/** A build with a deliberate mistake, to check that a run finds it. */
import { createHash } from "node:crypto";
import type { Script, Store } from "holdfast";

/**
 * The wrong lease length of hand-overs, in ms, which all waiters get, including those that rely on their full lease.
 */
const SHORT_MS = {
  /** The length of an unconfirmed grant, so it fails for longer sections. */
  "short-hand-off": 3_000,
  /** Fails for most long sections. */
  "brief-hand-off": 250,
};

export type Mistake = keyof typeof SHORT_MS;

export const MISTAKES: readonly Mistake[] = ["short-hand-off", "brief-hand-off"];

const GRANT = /(redis\.call\('SET', KEYS\[1\], waiter, 'PX', )([^\n]+)\)\n/g;

/** Wraps a store so that its scripts have the mistake. */
export function withMistake(store: Store, mistake: Mistake): Store {
  const known = new Map<string, Script>();
  const mistaken = (script: Script): Script => {
    const before = known.get(script.name);
    if (before !== undefined) return before;
    const source = script.source.replace(GRANT, `$1math.min(${SHORT_MS[mistake]}, tonumber($2)))\n`);
    if (script.source.includes("local function handOff") && source === script.source) {
      throw new Error(`${script.name} hands over in a way that this mistake does not support: see upgrade/mistakes.ts`);
    }
    const made = { ...script, source, sha1: createHash("sha1").update(source).digest("hex") };
    known.set(script.name, made);
    return made;
  };
  return {
    kind: store.kind,
    run: (script, keys, args, timeoutMs) => store.run(mistaken(script), keys, args, timeoutMs),
    inbox: (channel, onMessage, timeoutMs) => store.inbox(channel, onMessage, timeoutMs),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

/**
 * The rules of the failover grace in a cluster, and its assumptions. Each rule can be switched off, and each assumption
 * can be broken.
 */
import { inspectSlot } from "holdfast/simulation";
import type { ClusterSetting } from "./cluster-state.js";
import { type ClusterRule, ClusterWorld } from "./cluster-world.js";
import { type Explored, explore } from "./explore.js";
import { failoverScripts } from "./failover-scripts.js";
import type { ScriptTexts } from "./production-scripts.js";
import { changedTexts, type TextChange } from "./rule.js";

/** A rule or an assumption, and the world in which its absence is found. */
export interface ClusterCase {
  readonly id: string;
  readonly what: string;
  readonly changes: readonly TextChange[];
  readonly off: readonly ClusterRule[];
  readonly setting: ClusterSetting;
}

const PAIR: ClusterSetting = { clients: [1, 1], renewals: 0, delays: 0, moves: 0 };
const ONE_MOVE: ClusterSetting = { ...PAIR, moves: 1 };

/** The worlds, searched with all rules. */
export const CLUSTER_WORLDS: readonly {
  readonly id: string;
  readonly what: string;
  readonly setting: ClusterSetting;
}[] = [
  { id: "K1", what: "2 clients, a slot that stays", setting: PAIR },
  { id: "K2", what: "2 clients, a slot that moves once", setting: ONE_MOVE },
  { id: "K3", what: "2 clients, a slot that moves twice", setting: { ...PAIR, moves: 2 } },
  { id: "K4", what: "2 clients, 1 renewal, a slot that moves once", setting: { ...ONE_MOVE, renewals: 1 } },
];

function script(id: string, what: string, setting: ClusterSetting, change: TextChange): ClusterCase {
  return { id, what, changes: [change], off: [], setting };
}
function client(id: ClusterRule, what: string, setting: ClusterSetting): ClusterCase {
  return { id, what, changes: [], off: [id], setting };
}

/** Without any one of them, a search of its world finds a violation. */
export const CLUSTER_CASES: readonly ClusterCase[] = [
  script("quiet-period", "a run that took over grants nothing for a while", PAIR, {
    script: "server/lineage",
    from: "return math.max(0, math.min(longestMs, sinceMs + longestMs - nowMs)), sinceMs",
    to: "return 0, sinceMs",
  }),
  script("compare-run", "the marker of a slot is valid for one run", PAIR, {
    script: "server/shard",
    from: "{found == run and 0 or 1,",
    to: "{found and 0 or 1,",
  }),
  client("name-the-run", "a granting script is known only to servers on which it was loaded for that run", PAIR),
  client(
    "ask-all-masters",
    "a slot whose marker names another run is complete only if every master may grant",
    ONE_MOVE,
  ),
  client("short-trust", "a reply about a run is valid for less time than an election takes", ONE_MOVE),
  client("no-kept-load", "(an assumption) a script that was loaded for a run reaches no later master", PAIR),
  client(
    "no-third-server",
    "(an assumption) no request from before a failover is redirected to where the slot has moved since",
    ONE_MOVE,
  ),
];

let texts: Promise<ScriptTexts> | undefined;

/** The requests of the library to a single server that may have taken over, and the query about a slot. */
async function clusterScripts(): Promise<ScriptTexts> {
  const found = new Map(await failoverScripts());
  await inspectSlot(
    async ({ name, source }) => {
      found.set(name, source);
      return [1, -1, "a run", "a server"];
    },
    "hf:lineage",
    "",
    false,
    1_000,
  );
  return found;
}

async function searchCase(setting: ClusterSetting, of: Partial<ClusterCase>, maxStates: number): Promise<Explored> {
  texts ??= clusterScripts();
  return explore(new ClusterWorld(setting, changedTexts(await texts, of.changes ?? []), of.off ?? []), maxStates);
}

/** Searches a world with all rules. */
export function searchCluster(setting: ClusterSetting, maxStates: number): Promise<Explored> {
  return searchCase(setting, {}, maxStates);
}

/** Searches the world of a rule without that rule. */
export function searchClusterWithout(one: ClusterCase, maxStates: number): Promise<Explored> {
  return searchCase(one.setting, one, maxStates);
}

/** The rules and assumptions of the failover grace. Each rule can be switched off, and each assumption broken. */
import { type Explored, explore } from "./explore.js";
import { type FailoverTexts, failoverScripts } from "./failover-scripts.js";
import { type FailoverRule, type FailoverSetting, FailoverWorld, RUNS } from "./failover-world.js";
import { changedTexts, type TextChange } from "./rule.js";

/** One rule or assumption, and the world in which its absence is found. */
export interface FailoverCase {
  readonly id: string;
  readonly what: string;
  readonly changes: readonly TextChange[];
  readonly off: readonly FailoverRule[];
  readonly setting: FailoverSetting;
}

const PAIR: FailoverSetting = { clients: [1, 1], renewals: 0, delays: 0, copies: 0, deaf: 0 };

/** As before Redis 7. */
const SHARED: FailoverSetting = { ...PAIR, copies: 1, sharesScripts: true };

/** A world and its limits. */
export interface FailoverWorldSetting {
  readonly id: string;
  readonly what: string;
  readonly setting: FailoverSetting;
}

/** The worlds, searched with all rules. */
export const FAILOVER_WORLDS: readonly FailoverWorldSetting[] = [
  { id: "L1", what: "2 clients", setting: PAIR },
  { id: "L2", what: "2 clients, 1 renewal", setting: { ...PAIR, renewals: 1 } },
  {
    id: "L3",
    what: "after a failover that has lost a grant: 2 clients, 2 + 1 claims, 1 renewal, 2 ticks of delay",
    setting: { clients: [2, 1], renewals: 1, delays: 2, copies: 0, deaf: 0, begins: "after" },
  },
  {
    id: "L4",
    what: "2 clients, 1 renewal, 1 request that runs and is sent again",
    setting: { ...PAIR, renewals: 1, copies: 1 },
  },
  {
    id: "L5",
    what: "one holds and one waits, a third comes: 1 request that runs and is sent again, 1 waiter away from its inbox",
    setting: { clients: [1, 1, 1], renewals: 0, delays: 0, copies: 1, deaf: 1, begins: "queued" },
  },
  {
    id: "L6",
    what: "a replica that gets the scripts too: 2 clients, 1 request that runs and is sent again",
    setting: SHARED,
  },
];

function script(id: string, what: string, setting: FailoverSetting, ...changes: readonly TextChange[]): FailoverCase {
  return { id, what, changes, off: [], setting };
}
function client(id: FailoverRule, what: string, setting: FailoverSetting): FailoverCase {
  return { id, what, changes: [], off: [id], setting };
}
const LINEAGE = "server/lineage";

/** Without any one of them, a search of its world finds a violation. */
export const FAILOVER_CASES: readonly FailoverCase[] = [
  script("quiet-period", "a server that took over grants nothing for a while", PAIR, {
    script: LINEAGE,
    from: "return math.max(0, math.min(longestMs, sinceMs + longestMs - nowMs)), sinceMs",
    to: "return 0, sinceMs",
  }),
  script("quiet-for-a-lease", "that time is as long as the longest lease, not a tick shorter", PAIR, {
    script: LINEAGE,
    from: "sinceMs + longestMs - nowMs))",
    to: "sinceMs + longestMs - 1000 - nowMs))",
  }),
  script("compare-run", "the marker is valid for one run of one server", PAIR, {
    script: LINEAGE,
    from: "if settled == run then\n    return 0, nowMs",
    to: "if settled then\n    return 0, nowMs",
  }),
  script(
    "reclaim-only-what-is-ours",
    "a lease is restored only if nobody else was granted since",
    { clients: [2, 1], renewals: 1, delays: 2, copies: 0, deaf: 0, begins: "after" },
    { script: "mutex/reclaim", from: "if last and last - token > 0 then", to: "if false then" },
    { script: "mutex/reclaim", from: "if holder and holder ~= owner then", to: "if false then" },
    {
      script: "mutex/reclaim",
      from: "if not run or redis.call('HGET', KEYS[5], 'run') == run then",
      to: "if not run then",
    },
  ),
  script(
    "compare-run-in-script",
    "if replicas get scripts too, a granting script runs only in the run for which it was loaded",
    SHARED,
    { script: "mutex/acquire", from: "if not redis.REDIS_VERSION_NUM and", to: "if false and" },
  ),
  client("ask-first", "a granting script is loaded only on a server that was queried", PAIR),
  client("no-hand-off", "a release does not hand the lock over while the server may not grant", {
    clients: [1, 1, 1],
    renewals: 0,
    delays: 0,
    copies: 1,
    deaf: 1,
    begins: "queued",
  }),
  client("fresh-owner", "every request has its own owner id", {
    clients: [2],
    renewals: 1,
    delays: 0,
    copies: 1,
    deaf: 0,
  }),
  client("old-master-stops", "(an assumption) the old master serves nobody once another is promoted", PAIR),
];

const texts = new Map<string | undefined, Promise<FailoverTexts>>();

async function searchCase(setting: FailoverSetting, of: Partial<FailoverCase>, maxStates: number): Promise<Explored> {
  const sharedRun = setting.sharesScripts === true ? RUNS[0] : undefined;
  const wanted = texts.get(sharedRun) ?? failoverScripts(sharedRun);
  texts.set(sharedRun, wanted);
  const changed = changedTexts(await wanted, of.changes ?? []);
  return explore(new FailoverWorld(setting, changed, of.off ?? []), maxStates);
}

/** Searches a world with all rules. */
export function searchFailover(setting: FailoverSetting, maxStates: number): Promise<Explored> {
  return searchCase(setting, {}, maxStates);
}

/** Searches the world of a rule without that rule. */
export function searchFailoverWithout(one: FailoverCase, maxStates: number): Promise<Explored> {
  return searchCase(one.setting, one, maxStates);
}

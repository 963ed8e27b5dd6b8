/** What a small cluster is made of: two masters, a replica of the first that lags, and a slot with a lock in it. */
import { LEASE_MS, START_US } from "./canonical.js";
import { type ClaimsState, copyOfClaims, heldAfterTick, MARKER } from "./failover-claims.js";
import { type Held, Server } from "./server.js";

/** The first master, the second one, and the replica of the first. */
export type Site = 0 | 1 | 2;

/** What one process has found out about the slot. */
export interface ClientState {
  /** The run for which it knows that the slot is whole. -1 for none. */
  found: Site | -1;
  /** On the way to find that out: nothing asked, a foreign marker seen, that run settled, and those of the other masters. */
  step: 0 | 1 | 2 | 3;
  /** Of which server that is. */
  of: Site;
  /** Whether a script that grants was not known where the slot is. */
  needsLesson: 0 | 1;
}

/** All of it. */
export interface ClusterState extends ClaimsState {
  t: number;
  /** Where the slot is. */
  at: Site;
  isPromoted: 0 | 1;
  slot: Held;
  /** What the replica has of the slot, and what the first master wrote since. */
  replica: Held;
  backlog: Held[];
  /** What the two shards hold where the marker is that speaks for all of a server; the replica has got it. */
  homes: [Held, Held];
  /** Which texts each server knows: a bit for each run that is named. */
  knows: [number, number, number];
  clients: ClientState[];
  left: { renewals: number; delays: number; moves: number };
}

/** One world. */
export interface ClusterSetting {
  /** Of how many claims each client makes one after the other. */
  readonly clients: readonly number[];
  readonly renewals: number;
  readonly delays: number;
  /** How often the slot moves to the other shard. */
  readonly moves: number;
}

/** The marker of the slot. */
export const SLOT_MARKER = "s";

/** How each server calls its run: the replica has one once it is promoted. */
export const RUNS = ["a1", "b2", "c3/d4"] as const;

/** What a server knows that was master before, by a run that is over. */
const OF_ANOTHER_TIME = 8;
/** Any text. */
export const ANY_TEXT = 15;

const FORMER = ["0000", "0000", "f00d"] as const;
const FAR_MS = 60_000;
const MOST_BEHIND = 2;

/** The three servers, each with what it would say of itself. */
export function serversOf(texts: ReadonlyMap<string, string>): readonly Server[] {
  return RUNS.map((run, site) => {
    const [process, replication = "0"] = run.split("/");
    const own = [...texts].map(
      ([name, text]) =>
        [
          name,
          text
            .replaceAll("redis.pcall('INFO', 'server')", `'run_id:${process} uptime_in_seconds:9999'`)
            .replaceAll(
              "redis.pcall('INFO', 'replication')",
              `'master_replid:${replication} master_replid2:${FORMER[site]}'`,
            )
            .replaceAll("redis.pcall('CLUSTER', 'MYID')", `'${process}'`),
        ] as const,
    );
    return new Server(new Map(own));
  });
}

/**
 * Everybody has found the slot whole on the first master, which has forgotten its scripts since; the second one serves other
 * slots, and the replica was master once.
 */
export function initialOf(setting: ClusterSetting, claims: number): ClusterState {
  const { renewals, delays, moves, clients } = setting;
  const slot: Held = [[SLOT_MARKER, "hash", ["run", RUNS[0]], FAR_MS]];
  const home = (run: string): Held => [
    [MARKER, "hash", ["run", run, "longestMs", `${LEASE_MS}`, "beforeMs", "0", "periodMs", "0"], FAR_MS],
  ];
  return {
    t: START_US,
    at: 0,
    isPromoted: 0,
    slot,
    replica: slot,
    backlog: [],
    homes: [home(RUNS[0]), home(RUNS[1])],
    knows: [0, 2, OF_ANOTHER_TIME],
    claims: Array.from({ length: claims }, () => ({ ph: "idle", call: 0, tok: 0, age: 0, floor: 0, pv: 0 })),
    clients: clients.map(() => ({ found: 0, step: 0, of: 0, needsLesson: 0 })),
    requests: [],
    replies: [],
    highest: 0,
    left: { renewals, delays, moves },
  };
}

/** A copy that can be changed. */
export function copyOf(state: ClusterState): ClusterState {
  return {
    ...copyOfClaims(state),
    backlog: [...state.backlog],
    homes: [...state.homes],
    knows: [...state.knows],
    clients: state.clients.map((client) => ({ ...client })),
  };
}

/** The slot holds that from now on, where it is. */
export function write(next: ClusterState, slot: Held): void {
  if (JSON.stringify(slot) === JSON.stringify(next.slot)) return;
  next.slot = slot;
  if (next.at === 0) behind(next, slot);
}

function behind(next: ClusterState, slot: Held): void {
  next.backlog.push(slot);
  if (next.backlog.length > MOST_BEHIND) next.replica = next.backlog.shift() as Held;
}

/** The slot goes to the other shard, with all its keys. */
export function move(next: ClusterState): void {
  next.left.moves -= 1;
  const first: Site = next.isPromoted === 1 ? 2 : 0;
  if (next.at === 0) behind(next, []);
  next.at = next.at === 1 ? first : 1;
  if (next.at === 0) behind(next, next.slot);
}

/** The replica takes over, and the first master serves no client any more. */
export function promote(next: ClusterState): void {
  next.isPromoted = 1;
  if (next.at === 0) {
    next.at = 2;
    next.slot = next.replica;
  }
  next.replica = [];
  next.backlog = [];
  next.knows[0] = 0;
}

/** Time passes on all servers. */
export function serversAge(next: ClusterState): void {
  next.slot = heldAfterTick(next.slot);
  next.replica = heldAfterTick(next.replica);
  next.backlog = next.backlog.map(heldAfterTick);
  next.homes = [heldAfterTick(next.homes[0]), heldAfterTick(next.homes[1])];
}

/** Who serves slots now. */
export function mastersOf({ isPromoted }: ClusterState): readonly Site[] {
  return isPromoted === 1 ? [2, 1] : [0, 1];
}

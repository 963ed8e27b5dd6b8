/** The state of a small cluster: two masters, a lagging replica of the first, and a slot with a lock. */
import { LEASE_MS, START_US } from "./canonical.js";
import { type ClaimsState, copyOfClaims, heldAfterTick, MARKER } from "./failover-claims.js";
import { type Held, Server } from "./server.js";

/** The first master, the second one, and the replica of the first. */
export type Site = 0 | 1 | 2;

/** What a process knows about the slot. */
export interface ClientState {
  /** The run for which the process knows that the slot is complete; -1 for none. */
  found: Site | -1;
  /** Progress of finding out: nothing asked, another run's marker seen, that run settled, the other masters settled. */
  step: 0 | 1 | 2 | 3;
  /** The server whose marker was seen. */
  of: Site;
  /** Whether the server of the slot did not know a granting script. */
  needsLesson: 0 | 1;
}

/** The state of the world. */
export interface ClusterState extends ClaimsState {
  t: number;
  /** The server that has the slot. */
  at: Site;
  isPromoted: 0 | 1;
  slot: Held;
  /** The slot as the replica has it, and the later writes of the first master. */
  replica: Held;
  backlog: Held[];
  /** The slots of the two shards that contain the marker for a whole server. The replica has received them. */
  homes: [Held, Held];
  /** The script texts that each server knows, with one bit for each run that a text names. */
  knows: [number, number, number];
  clients: ClientState[];
  left: { renewals: number; delays: number; moves: number };
}

/** The settings of a world. */
export interface ClusterSetting {
  /** The number of consecutive claims of each client. */
  readonly clients: readonly number[];
  readonly renewals: number;
  readonly delays: number;
  /** The number of times that the slot moves to the other shard. */
  readonly moves: number;
}

/** The key of the slot's marker. */
export const SLOT_MARKER = "s";

/** The name of each server's run. The replica has one after its promotion. */
export const RUNS = ["a1", "b2", "c3/d4"] as const;

/** The bit for scripts that name a former run. A server knows them if it was master before. */
const OF_ANOTHER_TIME = 8;
/** The bits of all texts. */
export const ANY_TEXT = 15;

const FORMER = ["0000", "0000", "f00d"] as const;
const FAR_MS = 60_000;
const MOST_BEHIND = 2;

/** The three servers, each with its own replies about itself. */
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
 * The initial state. All clients have found the slot complete on the first master, which has lost its scripts since. The
 * second master serves other slots, and the replica was a master before.
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

/** Sets the content of the slot on its present server. */
export function write(next: ClusterState, slot: Held): void {
  if (JSON.stringify(slot) === JSON.stringify(next.slot)) return;
  next.slot = slot;
  if (next.at === 0) behind(next, slot);
}

function behind(next: ClusterState, slot: Held): void {
  next.backlog.push(slot);
  if (next.backlog.length > MOST_BEHIND) next.replica = next.backlog.shift() as Held;
}

/** Moves the slot to the other shard, with all its keys. */
export function move(next: ClusterState): void {
  next.left.moves -= 1;
  const first: Site = next.isPromoted === 1 ? 2 : 0;
  if (next.at === 0) behind(next, []);
  next.at = next.at === 1 ? first : 1;
  if (next.at === 0) behind(next, next.slot);
}

/** The replica takes over, and the first master no longer serves clients. */
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

/** A tick passes on all servers. */
export function serversAge(next: ClusterState): void {
  next.slot = heldAfterTick(next.slot);
  next.replica = heldAfterTick(next.replica);
  next.backlog = next.backlog.map(heldAfterTick);
  next.homes = [heldAfterTick(next.homes[0]), heldAfterTick(next.homes[1])];
}

/** The servers that serve slots now. */
export function mastersOf({ isPromoted }: ClusterState): readonly Site[] {
  return isPromoted === 1 ? [2, 1] : [0, 1];
}

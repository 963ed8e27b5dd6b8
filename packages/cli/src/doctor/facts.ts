/** What is known of one server. Undefined is "not known", never "no"; why it is not known stands in `hidden`. */

/** Facts that are read only if a check needs them. */
export type FactFamily =
  | "anonymous"
  | "clock"
  | "cluster"
  | "inbox"
  | "keys"
  | "latency"
  | "lineage"
  | "pauses"
  | "permissions"
  | "scripts"
  | "slow"
  | "users";

/** How the servers belong together. */
export type Topology = "single" | "sentinel" | "cluster" | "redlock";

/** What is known of one server. */
export interface NodeFacts {
  /** `host:port`. */
  readonly node: string;
  readonly topology: Topology;
  /** Whether this is where the URL leads, and not a replica that was met on the way. */
  readonly isGiven: boolean;
  /** Whether the address is one of this machine. */
  readonly isLocal: boolean;
  /** Why it does not answer; undefined if it does. */
  readonly unreachable?: string;
  /** Fields of INFO by name; empty where INFO is refused. */
  readonly info: ReadonlyMap<string, string>;
  /** Parameters that CONFIG GET shows. Of secrets only whether there is one: `set` or nothing. */
  readonly config: ReadonlyMap<string, string>;
  /** `master`, `slave` or `sentinel`, by ROLE or else by INFO. */
  readonly role?: string;
  /** The name that this connection has in the ACL. */
  readonly user?: string;
  /** Whether somebody without name and password can look at keys. */
  readonly anonymous?: "admitted" | "restricted" | "refused" | "uncertified" | "denied";
  readonly clock?: ClockFacts;
  readonly cluster?: ClusterFacts;
  readonly inbox?: InboxFacts;
  readonly keys?: KeyFacts;
  readonly latency?: LatencyFacts;
  readonly lineage?: LineageFacts;
  readonly pauses?: PauseFacts;
  readonly permissions?: PermissionFacts;
  readonly scripts?: ScriptFacts;
  readonly slow?: SlowFacts;
  /** Names of users that may empty the database. */
  readonly flushers?: readonly string[];
  /** What was refused, and in which words; by command (`INFO`, `CONFIG`) or family of facts. */
  readonly hidden: ReadonlyMap<string, string>;
}

/** The server's clock beside ours. */
export interface ClockFacts {
  /** Server less client at the middle of the round trip, in ms. */
  readonly offsetMs: number;
  /** The offset may be off by so much: half of the shortest round trip. */
  readonly uncertaintyMs: number;
  /** By how much the server's clock went on between two looks, and ours meanwhile. */
  readonly serverRanMs: number;
  readonly clientRanMs: number;
}

/** What a node says of its cluster. */
export interface ClusterFacts {
  /** Fields of CLUSTER INFO. */
  readonly info: ReadonlyMap<string, string>;
  /** Slots that are on their way from or to this node. */
  readonly moving: readonly number[];
  /** The keys of one name that the server puts into another slot than we do. */
  readonly misplaced: readonly string[];
}

/** A message to an inbox of our own, sent by a script as grants are. */
export interface InboxFacts {
  readonly isSharded: boolean;
  /** How many receivers the server counted. */
  readonly receivers?: number;
  /** After how long it arrived, in ms; undefined if it did not. */
  readonly arrivedMs?: number;
  /** Why it could not be tried. */
  readonly failure?: string;
}

/** The facts found in the keys. */
export interface KeyFacts {
  readonly seen: number;
  readonly total: number;
  /** Whether all keys were looked at. */
  readonly isComplete: boolean;
  /** First words of keys that are not below the prefix, and how many have them; the most frequent first. */
  readonly others: readonly (readonly [string, number])[];
  /** Keys below the prefix that should have an expiry, and have none. */
  readonly withoutExpiry: readonly string[];
  /** Keys below the prefix of which this version knows nothing. */
  readonly strange: readonly string[];
  /** Keys where a lock has its own, of another type than a lock writes. */
  readonly mistyped: readonly string[];
  /** Waiting claims, each as `key: owner`. */
  readonly waiting: readonly string[];
  /** Ids of the clients that have a record here. */
  readonly clients: readonly string[];
  /** Names that are in use as several kinds, each as `name (kind, kind)`. */
  readonly ofSeveralKinds?: readonly string[];
  /** Those of them whose records tell how they notice a dead connection. */
  readonly timeouts?: readonly TimeoutFacts[];
}

/** How one client notices a dead connection, as its record tells. */
export interface TimeoutFacts {
  /** Name of the client if it has one, with process and host. */
  readonly client: string;
  readonly library: string;
  readonly socketTimeoutMs?: number;
  readonly keepAliveMs?: number;
  /** What to do so that it replaces a dead connection; undefined if it does. */
  readonly cure?: string;
}

/** How long round trips take, in ms. */
export interface LatencyFacts {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What the server's marker says about whether it may grant. */
export interface LineageFacts {
  /** This run of this server, as lua/run-id.lua has it. */
  readonly run: string;
  readonly isPromoted: boolean;
  readonly upMs: number;
  /** The server's clock when it was asked. */
  readonly nowMs: number;
  /** Undefined if nobody has asked this server, or who replicates it, before. */
  readonly marker?: {
    readonly run?: string;
    readonly pending?: string;
    readonly sinceMs: number;
    readonly longestMs: number;
    /** Of a server of a quorum: the run for which enough of the other servers were asked how long leases are. */
    readonly heard?: string;
  };
}

/** The pauses in the histories, and whether they are in force. */
export interface PauseFacts {
  /** The server's clock after the last look. */
  readonly nowMs: number;
  /** How many histories were read. */
  readonly histories: number;
  /** Why others were not: there are too many, or there was no time. */
  readonly stopped?: "many" | "late";
  /** The last pause of each lock without a recorded resume. */
  readonly recorded: readonly RecordedPause[];
  /** For mutexes with a key, whose pause may be in the history of another node. */
  readonly ends?: readonly PauseEnd[];
  /** Whether a history has, or may have had, more events than were read. */
  readonly isCut?: boolean;
}

/** Which pause it is, from what stays of its owner when it is given another end. */
export interface PauseIdentity {
  readonly id: string;
  readonly sinceAtMs: number;
}

/** The end of a pause, as recorded in a history. */
export interface PauseEnd {
  readonly kind: string;
  readonly name: string;
  readonly key?: string;
  /** Undefined if the history does not say which pause ended. */
  readonly pause?: PauseIdentity;
  readonly atMs: number;
}

/** A pause, as recorded in a history. */
export interface RecordedPause {
  /** `mutex`, `election`, `semaphore` or `read-write-lock`. */
  readonly kind: string;
  readonly name: string;
  /** The `key` option of the mutex. */
  readonly key?: string;
  readonly by?: string;
  readonly label?: string;
  /** Undefined if the history does not say which pause it is. */
  readonly pause?: PauseIdentity;
  /** Approximate time of the pause. Its author recorded how long ago it was. */
  readonly atMs: number;
  /** Undefined if somebody has to resume. */
  readonly untilAtMs?: number;
  /** Whether the lock is paused, or was resumed since; undefined if this server does not know. */
  readonly isInForce?: boolean;
}

/** What this user may do. Each is the server's word of refusal; undefined if it may, or if it could not be tried. */
export interface PermissionFacts {
  /** Rules of ACL SETUSER that are missing, such as `+evalsha`. */
  readonly missing: readonly string[];
  /** Commands that this server lets no script call, such as `TIME`. */
  readonly forbidden: readonly string[];
  /** Rules that could not be tried, and why. */
  readonly untried: ReadonlyMap<string, string>;
}

/** Whether the server takes our scripts. */
export interface ScriptFacts {
  readonly loaded: number;
  /** Those that were refused, each as `name: why`. */
  readonly refused: readonly string[];
  /** Why one that was loaded could not be called. */
  readonly notCalled?: string;
  /** Why one without keys could not be called, although one with a key could. */
  readonly notCalledWithoutKeys?: string;
}

/** Commands that took long. */
export interface SlowFacts {
  readonly entries: readonly SlowCommand[];
  /** Spikes by LATENCY LATEST, each as event, when (ms since 1970) and its worst in ms. */
  readonly spikes: readonly { readonly event: string; readonly atMs: number; readonly worstMs: number }[];
}

/** One line of SLOWLOG. */
export interface SlowCommand {
  readonly atMs: number;
  readonly tookMs: number;
  /** In lower case. */
  readonly command: string;
  readonly isScript: boolean;
}

/** A field of INFO as a number. */
export function numberIn(map: ReadonlyMap<string, string>, field: string): number | undefined {
  const text = map.get(field);
  const number = text === undefined || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** The known facts about one server. Undefined means "not known", never "no"; `hidden` says why a fact is not known. */

/** Groups of facts that are read only if a check needs them. */
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

/** How the servers work together. */
export type Topology = "single" | "sentinel" | "cluster" | "redlock";

/** The known facts about one server. */
export interface NodeFacts {
  /** `host:port`. */
  readonly node: string;
  readonly topology: Topology;
  /** Whether the URL leads to this server. False for a replica that another server reported. */
  readonly isGiven: boolean;
  /** Whether the address belongs to this machine. */
  readonly isLocal: boolean;
  /** Why the server does not answer; undefined if it answers. */
  readonly unreachable?: string;
  /** The fields of INFO by name; empty if INFO is refused. */
  readonly info: ReadonlyMap<string, string>;
  /** The parameters that CONFIG GET shows. For a secret that is set, the value is `set`. */
  readonly config: ReadonlyMap<string, string>;
  /** `master`, `slave` or `sentinel`, from ROLE or otherwise from INFO. */
  readonly role?: string;
  /** The ACL user of this connection. */
  readonly user?: string;
  /** Whether a client without user name and password can read keys. */
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
  /** The names of users that may empty the database. */
  readonly flushers?: readonly string[];
  /** What was refused and the error message, by command (`INFO`, `CONFIG`) or family of facts. */
  readonly hidden: ReadonlyMap<string, string>;
}

/** The server's clock compared with this host's clock. */
export interface ClockFacts {
  /** The server's time minus the client's time at the middle of the round trip, in ms. */
  readonly offsetMs: number;
  /** The largest possible error of `offsetMs`: half of the shortest round trip, plus 1 ms. */
  readonly uncertaintyMs: number;
  /**
   * How much time passed on the server's clock between two readings; `clientRanMs` is the same for this host's clock.
   */
  readonly serverRanMs: number;
  readonly clientRanMs: number;
}

/** What a node reports about its cluster. */
export interface ClusterFacts {
  /** The fields of CLUSTER INFO. */
  readonly info: ReadonlyMap<string, string>;
  /** Slots that are being migrated to or from this node. */
  readonly moving: readonly number[];
  /** Probe keys for which the server and Holdfast compute different slots. */
  readonly misplaced: readonly string[];
}

/** The result of sending a test message to an inbox with a script, the way grants are sent. */
export interface InboxFacts {
  readonly isSharded: boolean;
  /** The number of receivers that the server counted. */
  readonly receivers?: number;
  /** The time until the message arrived, in ms; undefined if it did not arrive. */
  readonly arrivedMs?: number;
  /** Why the test was not possible. */
  readonly failure?: string;
}

/** The facts found in the keys. */
export interface KeyFacts {
  readonly seen: number;
  readonly total: number;
  /** Whether all keys were read. */
  readonly isComplete: boolean;
  /** The first words of keys outside the prefix and how many keys have each, most frequent first. */
  readonly others: readonly (readonly [string, number])[];
  /** Keys below the prefix that should expire but have no expiry. */
  readonly withoutExpiry: readonly string[];
  /** Keys below the prefix that this version does not know. */
  readonly strange: readonly string[];
  /** Keys that a lock uses, but whose type is not the one that a lock writes. */
  readonly mistyped: readonly string[];
  /** Waiting claims, each as `key: owner`. */
  readonly waiting: readonly string[];
  /** Ids of the clients that have a record on this node. */
  readonly clients: readonly string[];
  /** Names that are in use as several kinds of lock, each as `name (kind, kind)`. */
  readonly ofSeveralKinds?: readonly string[];
  /** Whether this user may not read the records of clients. */
  readonly areRecordsHidden?: boolean;
  /** Clients whose record shows how they detect a dead connection. */
  readonly timeouts?: readonly TimeoutFacts[];
  /** Clients whose record could be read, with the protocol that they use. */
  readonly protocols?: readonly ProtocolFacts[];
}

/** The protocol of one client, according to its record. */
export interface ProtocolFacts {
  readonly id: string;
  /** The name of the client if it has one, with process and host. */
  readonly client: string;
  /** 0 for clients that predate protocol versions. */
  readonly protocol: number;
  /** The version of the library; empty if unknown. */
  readonly version: string;
}

/** How one client detects a dead connection, according to its record. */
export interface TimeoutFacts {
  /** The name of the client if it has one, with process and host. */
  readonly client: string;
  readonly library: string;
  readonly socketTimeoutMs?: number;
  readonly keepAliveMs?: number;
  /** What to do so that the client replaces a dead connection; undefined if it already does. */
  readonly cure?: string;
}

/** How long round trips take, in ms. */
export interface LatencyFacts {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** The content of the server's marker, which decides whether the server may grant. */
export interface LineageFacts {
  /** The current run of this server, computed as in lua/run-id.lua. */
  readonly run: string;
  readonly isPromoted: boolean;
  readonly upMs: number;
  /** Server time of the reading, in ms since 1970. */
  readonly nowMs: number;
  /** Undefined if no client has used this server, or the server that it replicates from. */
  readonly marker?: {
    readonly run?: string;
    readonly pending?: string;
    readonly sinceMs: number;
    readonly longestMs: number;
    /** For a server of a quorum: the run for which enough other servers reported their longest lease. */
    readonly heard?: string;
  };
}

/** The pauses in the histories, and whether they were lost. */
export interface PauseFacts {
  /** Server time after the last reading, in ms since 1970. */
  readonly nowMs: number;
  /** The number of histories that were read. */
  readonly histories: number;
  /** Why some histories were not read: there are too many, or the time ran out. */
  readonly stopped?: "many" | "late";
  /** The last pause of each lock, unless a recorded resume ended it. */
  readonly recorded: readonly RecordedPause[];
  /** Recorded resumes of mutexes with a key. The matching pause may be in the history of another node. */
  readonly ends?: readonly PauseEnd[];
  /** Whether a history has, or may have had, more events than were read. */
  readonly isCut?: boolean;
}

/** Identifies a pause by the parts of its owner id that stay the same when its end is changed. */
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
  /** Undefined if the history does not say which pause this is. */
  readonly pause?: PauseIdentity;
  /** The approximate time of the pause, computed from the age that was recorded with it. */
  readonly atMs: number;
  /** Undefined if the pause has no end and must be resumed. */
  readonly untilAtMs?: number;
  /**
   * False if the pause was lost: the lock is not paused, although no known resume ended this pause. True if the lock is
   * paused or was resumed; undefined if this server does not know.
   */
  readonly isInForce?: boolean;
}

/** The permissions of this user. */
export interface PermissionFacts {
  /** The ACL SETUSER rules that are missing, such as `+evalsha`. */
  readonly missing: readonly string[];
  /** The commands that this server does not allow in scripts, such as `TIME`. */
  readonly forbidden: readonly string[];
  /** The rules that could not be tried, and why. */
  readonly untried: ReadonlyMap<string, string>;
}

/** Whether the server accepts the library's scripts. */
export interface ScriptFacts {
  readonly loaded: number;
  /** The scripts that were refused, each as `name: why`. */
  readonly refused: readonly string[];
  /** Why a loaded script could not be called. */
  readonly notCalled?: string;
  /** Why a script without keys could not be called, although one with a key could. */
  readonly notCalledWithoutKeys?: string;
}

/** Slow commands and latency spikes. */
export interface SlowFacts {
  readonly entries: readonly SlowCommand[];
  /** The spikes from LATENCY LATEST: event, time (ms since 1970), and worst latency in ms. */
  readonly spikes: readonly { readonly event: string; readonly atMs: number; readonly worstMs: number }[];
}

/** One entry of SLOWLOG. */
export interface SlowCommand {
  readonly atMs: number;
  readonly tookMs: number;
  /** In lower case. */
  readonly command: string;
  readonly isScript: boolean;
}

/** Returns a field of INFO as a number. */
export function numberIn(map: ReadonlyMap<string, string>, field: string): number | undefined {
  const text = map.get(field);
  const number = text === undefined || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** What a fault can act on: servers, connections to them, and client processes. */

import type { Fault, LateRequest, Outcome } from "../history/records.js";
import type { Random } from "../simulation/random.js";
import type { Cell } from "./cell.js";

/** One server of a topology, with the connection that clients use. */
export interface ServerHandle {
  readonly name: string;
  /** Its own port, without any proxy. */
  readonly port: number;
  readonly pid: number;
  /** Sends a command without any proxy; rejects on an error reply. */
  command(...words: (string | number)[]): Promise<unknown>;
  freeze(): void;
  resume(): void;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SHUTDOWN, as configured. */
  shutdown(): Promise<void>;
  /** Restarts it on the same port with its existing files. Resolves when it replies. */
  restart(): Promise<void>;
  /** The directory of its files. */
  readonly directory: string;
  /** Sets the offset of its wall clock from now on; needs the clock shim, see `Topology.hasClockShim`. */
  stepClock(offsetMs: number): void;
  /** Stops its wall clock until `stepClock`. */
  freezeClock(): void;
  /** Makes every sync of a file take this much longer; needs the sync shim, see `Topology.hasSyncShim`. */
  slowSyncs(ms: number): void;
  /**
   * Sends SIGKILL and removes everything that was not synced from the disk. Does not restart it. Needs the sync shim.
   */
  powerLoss(): Promise<PowerLoss>;
}

/** What a power loss left of the last append-only file. */
export interface PowerLoss {
  readonly keptBytes: number;
  /** 0 if everything had been synced. */
  readonly cutBytes: number;
}

/** Proxy ports by the addresses of the servers behind them, as servers and sentinels report them to clients. */
export type Lines = Readonly<Record<string, number>>;

/** How clients reach the servers, always through proxies. */
export type Reach =
  | { readonly by: "port" }
  | { readonly by: "quorum"; readonly ports: readonly number[] }
  | { readonly by: "sentinel"; readonly name: string; readonly sentinels: readonly number[]; readonly lines: Lines }
  | { readonly by: "cluster"; readonly lines: Lines };

/** Servers, and the connections by which clients reach them. */
export interface Topology {
  /** The servers that hold data. If they are replicas of each other, the initial master comes first. */
  readonly servers: readonly ServerHandle[];
  /** The port that clients connect to: a proxy in front of the target server. */
  readonly port: number;
  /** The connection to the server that faults hit. */
  readonly proxy: FaultProxy;
  readonly hasClockShim: boolean;
  readonly hasSyncShim: boolean;
  /** How the client with that index, from 0, reaches its servers; absent if `port` is enough. */
  reachOf?(index: number): Reach;
  /** The server that faults hit, if that is not always the first. */
  readonly target?: ServerHandle;
  /** Independent servers, and how faults choose among them; absent for other topologies. */
  readonly quorum?: QuorumControls;
  /** Controls for replicas; absent if there are none. */
  readonly replicas?: ReplicaControls;
  stop(): Promise<void>;
}

/** Controls for faults of independent servers. */
export interface QuorumControls {
  readonly majority: number;
  /** The proxies in front of the servers, in the same order. */
  readonly proxies: readonly FaultProxy[];
  /** Makes faults hit that server. */
  aim(index: number): void;
}

/** Controls for faults of masters and replicas. */
export interface ReplicaControls {
  /** The servers that accept requests for keys: one behind sentinels, several in a cluster. */
  masters(): Promise<readonly ServerHandle[]>;
  /** The current master of the first server's keys. */
  master(): Promise<ServerHandle>;
  /** The running replicas of the current `master`. */
  replicas(): Promise<readonly ServerHandle[]>;
  /** Whether the lock is stored on the first server while that is a master. */
  isOnFirst(lockName: string): boolean;
  /**
   * Makes the sentinels or nodes promote another server, with the old master alive or dead. @returns the new master
   */
  handOver(): Promise<ServerHandle>;
  /** Restarts a killed server as a replica of the current master. */
  rejoin(server: ServerHandle): Promise<void>;
  /** Waits until the other servers have elected a master in place of `old`. @returns that master */
  succeeded(old: ServerHandle): Promise<ServerHandle>;
  /**
   * Promotes a replica manually, without telling the old master, which continues. Clients with odd indexes then reach
   * the new master, the others the old one. @returns the new master
   */
  split(): Promise<ServerHandle>;
  /** Ends the split that `split` began. There is one master again. */
  heal(): Promise<void>;
  /** Waits until all servers agree and all replicas follow. @throws Error  they do not within half a minute */
  settled(): Promise<void>;
  /**
   * Moves the slot of that lock to another master of a cluster, key by key, and calls `between` after each step.
   * @returns the number of keys
   */
  moveSlot?(lockName: string, between: () => Promise<void>): Promise<number>;
}

/** Selects the request for a fault, by its words (script bodies and hashes appear as script names). */
export type Matches = (words: readonly string[]) => boolean;

/** The connection between clients and a server. Every fault reports when it has struck. */
export interface FaultProxy {
  readonly port: number;
  /** How many times each event has happened since the start, by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** Does not forward the next matching request, and cuts the connection. */
  loseRequest(matches: Matches): Promise<void>;
  /** Forwards the next matching request, and cuts the connection instead of forwarding its reply. */
  loseReply(matches: Matches): Promise<void>;
  /**
   * Forwards the next matching request twice. The client gets the second reply, or the first, as on a connection that
   * delivers a late copy.
   */
  duplicate(matches: Matches, answer?: "first" | "second"): Promise<void>;
  /**
   * Delivers the next matching request `delayMs` later, if necessary on a new connection after its client's is
   * closed.
   */
  late(matches: Matches, delayMs: number): Promise<void>;
  /** The delayed requests that have arrived since the last call. */
  takeLate(): readonly LateRequest[];
  /** Delays every request and reply by a random number of ms, in order; undefined stops that. */
  delay(drawMs: (() => number) | undefined): void;
  /** Forwards nothing in a direction, with open sockets. */
  stall(direction: "requests" | "replies" | "both"): void;
  resume(): void;
  /** The newest pub/sub message that the server sent to any client through this proxy. */
  lastMessage(): { readonly channel: string; readonly text: string } | undefined;
  /** The share of pub/sub messages to drop, 0 to 1. */
  dropMessages(share: number): void;
  /**
   * Black-holes the currently open connections: no data passes, and neither side notices. With `closesServerSide`,
   * the server sees them close, but the client does not. New connections work. @returns the number of connections
   */
  silence(which: "subscribers" | "all", how?: { readonly closesServerSide?: boolean }): number;
  /** Replies to the next matching request with this error, without forwarding it. */
  answerError(matches: Matches, text: string): Promise<void>;
  /** Resolves when the next matching request arrives, and forwards it: for a fault at that moment. */
  meet(matches: Matches): Promise<void>;
  /** Removes the faults whose request has not come; their promises stay pending. */
  disarm(): void;
  /** Closes all connections, and forwards new ones to another server. */
  lead(targetPort: number): void;
  cutAll(): void;
  close(): Promise<void>;
}

/** The settings with which a client process uses locks repeatedly by itself. */
export interface Work {
  /** The number of names in use; each is replaced by a new one when it has too many open operations. */
  readonly names: number;
  readonly sessions: number;
  readonly leaseMs: number;
  /** The longest hold; it exceeds the lease if that is renewed. */
  readonly holdMs: number;
  readonly waitMs: number;
  /** Effects on the protected resource during a hold: none, without token, or with token. */
  readonly effects: "none" | "unfenced" | "fenced";
}

/** A lease that a client acquires and keeps on command. */
export interface Taken {
  readonly leaseId: number;
  readonly token: number | null;
  readonly validUntilMs: number | null;
}

/** A process that uses locks and records what it does. */
export interface Client {
  readonly name: string;
  readonly pid: number;
  /** Works by itself until `rest`. */
  work(work: Work): Promise<void>;
  /** Starts no more sessions; resolves when the last one has ended. */
  rest(): Promise<void>;
  /** Acquires the lock and keeps it; resolves with undefined if it was refused or failed. */
  take(options: {
    readonly lockName: string;
    readonly leaseMs: number;
    readonly waitMs?: number;
    readonly renew?: boolean;
    readonly mode?: "read" | "write";
    readonly permits?: number;
    /** Aborts the wait after this time. */
    readonly abortMs?: number;
  }): Promise<Taken | undefined>;
  /** The subject's message when it refused the last `take`; undefined otherwise. */
  readonly lastRefusal?: string | undefined;
  /** Extends or releases what was acquired. */
  extend(leaseId: number, leaseMs: number): Promise<void>;
  release(leaseId: number): Promise<void>;
  /** Calls a latch once, with the count to set, the number to count down (0 without an id), or the time to wait. */
  latch(lockName: string, verb: "set-count" | "count-down" | "await" | "count", number: number): Promise<Outcome>;
  /** Arrives at a barrier, or resets it. */
  barrier(lockName: string, act: "arrive" | "reset", waitMs: number): Promise<Outcome>;
  /**
   * Acquires the mutex, waits for a signal of its condition or sends one, and releases the mutex.
   *
   * @returns the outcome, and the number of signaled waiters
   */
  condition(
    lockName: string,
    act: "wait" | "signal",
    waitMs: number,
  ): Promise<{ readonly outcome: Outcome; readonly moved: number }>;
  /** Records what the lease reports about itself now. */
  sample(leaseId: number): Promise<boolean>;
  /** Adds a value to the resource that the lock protects; false if it was refused. */
  write(leaseId: number, isFenced: boolean): Promise<boolean>;
  /** Blocks the event loop for this time. */
  block(forMs: number): Promise<void>;
  /** Sets the offset of its wall clock, as the subject sees it. */
  stepWall(offsetMs: number): Promise<void>;
  freeze(): void;
  resume(): void;
  /** Sends SIGKILL and records the fault. `start` starts a new process with the same name. */
  kill(): Promise<void>;
  /** Ends without any message: process exit, or an uncaught error. */
  vanish(how: "exit" | "error"): Promise<void>;
  /** Starts the next incarnation. */
  start(): Promise<void>;
}

/** A separate network for some of the clients. They reach the server under the same address as the others. */
export interface Place {
  /** The program that starts a client there instead of Node, by index from 0; undefined for clients outside. */
  execPath(index: number): string | undefined;
  /** Cuts its connection. @returns what the kernel reports about it */
  cutOff(): Promise<string>;
  /** Restores its connection. @returns what the kernel reports about it */
  restore(): Promise<string>;
  /** Removes the network. Clients there must have ended. */
  end(): Promise<void>;
}

/** The environment of a run of one cell. */
export interface Stage {
  readonly cell: Cell;
  readonly random: Random;
  readonly topology: Topology;
  readonly clients: readonly Client[];
  readonly leaseMs: number;
  /** The peer that is tested, if it is not Holdfast. */
  readonly peer?: string;
  /** Present if the injection requested one. */
  readonly place?: Place;
  /** The recorder's clock. */
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  /** Adds a fault to the history, with the proof that it struck; a null proof makes the cell void. */
  struck(fault: Omit<Fault, "type">): void;
  /** Records a case that the injection itself decides; `message` is the violation, or undefined. */
  decide(property: string, lockName: string, message: string | undefined): void;
  /** A new name for a lock of a directed run. */
  newName(): string;
  /** The prefix of a lock's keys, for faults that delete them. */
  keyPrefix(lockName: string): string;
  /** The key of the counter for a lock's tokens. */
  fenceKey(lockName: string): string;
}

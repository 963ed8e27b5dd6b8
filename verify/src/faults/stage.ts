/** What a fault finds to strike: servers, the lines to them, and processes that lock. */

import type { Fault, LateRequest, Outcome } from "../history/records.js";
import type { Random } from "../simulation/random.js";
import type { Cell } from "./cell.js";

/** One server of a topology, with the line that clients reach it by. */
export interface ServerHandle {
  readonly name: string;
  /** Its own port, past every proxy. */
  readonly port: number;
  readonly pid: number;
  /** Sends one command past every proxy; rejects on an error reply. */
  command(...words: (string | number)[]): Promise<unknown>;
  freeze(): void;
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SHUTDOWN, as configured. */
  shutdown(): Promise<void>;
  /** Starts again on the same port, on the files that are there. Resolves when it answers. */
  restart(): Promise<void>;
  /** Where it keeps its files. */
  readonly directory: string;
  /** Sets its wall clock off by so much, from now on; needs the clock shim, see `Topology.hasClockShim`. */
  stepClock(offsetMs: number): void;
  /** Its wall clock stands still until `stepClock`. */
  freezeClock(): void;
  /** Every sync of a file takes so much longer from now on; needs the sync shim, see `Topology.hasSyncShim`. */
  slowSyncs(ms: number): void;
  /** SIGKILL, and what was not synced is gone from the disk. Does not start it again. Needs the sync shim. */
  powerLoss(): Promise<PowerLoss>;
}

/** What a power loss left of the last append-only file. */
export interface PowerLoss {
  readonly keptBytes: number;
  /** 0 if everything had been synced. */
  readonly cutBytes: number;
}

/** Ports of proxies, by the addresses of the servers behind them, as servers and sentinels tell them to clients. */
export type Lines = Readonly<Record<string, number>>;

/** How clients find the servers: always by proxies. */
export type Reach =
  | { readonly by: "port" }
  | { readonly by: "quorum"; readonly ports: readonly number[] }
  | { readonly by: "sentinel"; readonly name: string; readonly sentinels: readonly number[]; readonly lines: Lines }
  | { readonly by: "cluster"; readonly lines: Lines };

/** Servers, and the lines by which clients reach them. */
export interface Topology {
  /** That hold data; of those that are replicas of each other, the first master first. */
  readonly servers: readonly ServerHandle[];
  /** The port that clients connect to: a proxy before the server that is aimed at. */
  readonly port: number;
  /** The connection to the server that the faults strike. */
  readonly proxy: FaultProxy;
  readonly hasClockShim: boolean;
  readonly hasSyncShim: boolean;
  /** How the client of that place finds its servers, from 0; absent where `port` is all that there is. */
  reachOf?(index: number): Reach;
  /** The server that faults are for, if that is not always the first. */
  readonly target?: ServerHandle;
  /** Servers that do not know of each other, and how faults choose among them; absent where there is one order. */
  readonly quorum?: QuorumControls;
  /** Servers that are replicas of others; absent where there are none. */
  readonly replicas?: ReplicaControls;
  stop(): Promise<void>;
}

/** What faults do with independent servers. */
export interface QuorumControls {
  readonly majority: number;
  /** A line to each server, in their order. */
  readonly proxies: readonly FaultProxy[];
  /** Faults strike that server from now on. */
  aim(index: number): void;
}

/** What faults do with masters and replicas. */
export interface ReplicaControls {
  /** Those who may be asked for keys now: one behind sentinels, several in a cluster. */
  masters(): Promise<readonly ServerHandle[]>;
  /** Who has the keys of the first server's names now. */
  master(): Promise<ServerHandle>;
  /** Replicas of the present `master` that run. */
  replicas(): Promise<readonly ServerHandle[]>;
  /** Whether a lock of that name lives on the first server, as long as that is a master. */
  isOnFirst(lockName: string): boolean;
  /** Another is made the master by those who choose, with the old one alive or dead. @returns it */
  handOver(): Promise<ServerHandle>;
  /** Starts a killed server again, as a replica of the present master. */
  rejoin(server: ServerHandle): Promise<void>;
  /** Waits until the other servers have elected a master in place of `old`. @returns that master */
  succeeded(old: ServerHandle): Promise<ServerHandle>;
  /**
   * A replica is made a master by hand, and the old one goes on and is not told: clients of odd places reach the new one
   * from now on, the others the old one. @returns the new one
   */
  split(): Promise<ServerHandle>;
  /** Ends the split that `split` began. There is one master again. */
  heal(): Promise<void>;
  /** All agree, and all replicas follow. @throws Error  they do not, in half a minute */
  settled(): Promise<void>;
  /**
   * Moves the slot of that lock to another master of a cluster, key by key, and calls `between` after each step.
   * @returns how many
   */
  moveSlot?(lockName: string, between: () => Promise<void>): Promise<number>;
}

/** Which request a fault is for: its words joined by spaces (script bodies and hashes as script names). */
export type Matches = (words: readonly string[]) => boolean;

/** The line between clients and a server. Every fault says when it has struck. */
export interface FaultProxy {
  readonly port: number;
  /** How often each thing happened since the start, by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** The next matching request is not passed on; the connection is cut. */
  loseRequest(matches: Matches): Promise<void>;
  /** The next matching request is passed on; when its reply is here, the connection is cut in its place. */
  loseReply(matches: Matches): Promise<void>;
  /**
   * The next matching request is passed on twice; the client gets the second reply, or the first, as on a line that
   * brings a copy of what was long answered.
   */
  duplicate(matches: Matches, answer?: "first" | "second"): Promise<void>;
  /** The next matching request arrives `delayMs` later, if need be on a connection of its own after its client's is gone. */
  late(matches: Matches, delayMs: number): Promise<void>;
  /** Those of them that have arrived since this was last asked. */
  takeLate(): readonly LateRequest[];
  /** Delays every request and reply by a number of ms, drawn again each time, and keeps their order; undefined ends it. */
  delay(drawMs: (() => number) | undefined): void;
  /** Passes nothing on in a direction, sockets stay open. */
  stall(direction: "requests" | "replies" | "both"): void;
  resume(): void;
  /** The newest pub/sub message that the server sent to any client here. */
  lastMessage(): { readonly channel: string; readonly text: string } | undefined;
  /** Share of pub/sub messages that are dropped, 0 to 1. */
  dropMessages(share: number): void;
  /**
   * Black-holes the connections that are open now: nothing passes, and neither side learns that the other is gone. With
   * `closesServerSide` the server sees them end, and the client does not. New connections work. @returns how many it struck
   */
  silence(which: "subscribers" | "all", how?: { readonly closesServerSide?: boolean }): number;
  /** The next matching request is answered with this error and not passed on. */
  answerError(matches: Matches, text: string): Promise<void>;
  /** Lets the next matching request pass, and says that it is here: for a strike at that very moment. */
  meet(matches: Matches): Promise<void>;
  /** Forgets the faults that have not met their request; their promises stay open. */
  disarm(): void;
  /** Ends all connections, and leads those that come to another server. */
  lead(targetPort: number): void;
  cutAll(): void;
  close(): Promise<void>;
}

/** How a client process is told to work on a lock by itself, over and over. */
export interface Work {
  /** Names are taken in turns from this many, and each is left for a new one when it is worn out. */
  readonly names: number;
  readonly sessions: number;
  readonly leaseMs: number;
  /** Longest time that a lease is held; longer than the lease if it is renewed. */
  readonly holdMs: number;
  readonly waitMs: number;
  /** Effects at the guarded resource while a lease is held: none, without and with the token. */
  readonly effects: "none" | "unfenced" | "fenced";
}

/** A lease that a client acquires and keeps on command. */
export interface Taken {
  readonly leaseId: number;
  readonly token: number | null;
  readonly validUntilMs: number | null;
}

/** A process that locks, and records what it does. */
export interface Client {
  readonly name: string;
  readonly pid: number;
  /** Works by itself until `rest`. */
  work(work: Work): Promise<void>;
  /** Begins no session any more; resolves when the last is over. */
  rest(): Promise<void>;
  /** Takes the lock and keeps it; resolves with undefined if it was refused or failed. */
  take(options: {
    readonly lockName: string;
    readonly leaseMs: number;
    readonly waitMs?: number;
    readonly renew?: boolean;
    readonly mode?: "read" | "write";
    readonly permits?: number;
    /** Aborts the wait after so long. */
    readonly abortMs?: number;
  }): Promise<Taken | undefined>;
  /** What the subject said when it refused the last `take`; undefined if it did not. */
  readonly lastRefusal?: string | undefined;
  /** Extends, or gives back, what was taken. */
  extend(leaseId: number, leaseMs: number): Promise<void>;
  release(leaseId: number): Promise<void>;
  /** Calls a latch once: with the count to set, what to count down (0 under no id), how long to await. */
  latch(lockName: string, verb: "set-count" | "count-down" | "await" | "count", number: number): Promise<Outcome>;
  /** Arrives at a barrier, or resets it. */
  barrier(lockName: string, act: "arrive" | "reset", waitMs: number): Promise<Outcome>;
  /**
   * Takes the mutex, waits for a signal of its condition or gives one, and gives the mutex back.
   *
   * @returns the outcome of that, and how many were signalled
   */
  condition(
    lockName: string,
    act: "wait" | "signal",
    waitMs: number,
  ): Promise<{ readonly outcome: Outcome; readonly moved: number }>;
  /** Records what it says of itself now. */
  sample(leaseId: number): Promise<boolean>;
  /** Adds one value to the resource that the lock guards; false if it was refused. */
  write(leaseId: number, isFenced: boolean): Promise<boolean>;
  /** Runs a synchronous loop for so long. */
  block(forMs: number): Promise<void>;
  /** Its wall clock, as the subject sees it, is off by so much from now on. */
  stepWall(offsetMs: number): Promise<void>;
  freeze(): void;
  resume(): void;
  /** SIGKILL; records the fault. A new process of the same name takes its place with `start`. */
  kill(): Promise<void>;
  /** Ends without any message: process exit, or an uncaught error. */
  vanish(how: "exit" | "error"): Promise<void>;
  /** The next incarnation. */
  start(): Promise<void>;
}

/** A network of its own for some of the clients. They reach the server under the same address as those outside. */
export interface Place {
  /** Runs in place of node to start a client there, by its place from 0; undefined for those that stay outside. */
  execPath(index: number): string | undefined;
  /** Cuts the connection to that host. Reports what the kernel says about it. */
  cutOff(): Promise<string>;
  /** The line is up again. Says what the kernel says of it. */
  restore(): Promise<string>;
  /** Removes the network. Clients there must have ended. */
  end(): Promise<void>;
}

/** What a run of one cell stands on. */
export interface Stage {
  readonly cell: Cell;
  readonly random: Random;
  readonly topology: Topology;
  readonly clients: readonly Client[];
  readonly leaseMs: number;
  /** What is driven, if it is not this library. */
  readonly peer?: string;
  /** Present if the injection asked for one. */
  readonly place?: Place;
  /** The recorder's clock. */
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  /** Puts a fault into the history, with what shows that it struck; null proof makes the cell void. */
  struck(fault: Omit<Fault, "type">): void;
  /** Puts a case on record that the injection itself decides; `message` says what is wrong, undefined that nothing is. */
  decide(property: string, lockName: string, message: string | undefined): void;
  /** A name for the locks of directed runs, new for each call. */
  newName(): string;
  /** How the server's keys of a lock begin; for faults that delete them. */
  keyPrefix(lockName: string): string;
  /** The key of the counter that the tokens of a lock come from. */
  fenceKey(lockName: string): string;
}

/** What the measuring process asks of a worker, and what it gets. */

/** Free locks, one at a time. */
export interface OneAtATime {
  readonly task: "one-at-a-time";
  readonly seconds: number;
}

/** How long pairs took, in µs. */
export interface Times {
  readonly p50: number;
  readonly p99: number;
}

/** Free locks, so many at a time. */
export interface Pairs {
  readonly task: "pairs";
  readonly seconds: number;
  readonly parallel: number;
  /**
   * What the names of the locks begin with: not the same for two processes, whose locks would not be free. "order" if
   * absent.
   */
  readonly prefix?: string;
  /** It takes longer where so many pairs take longer. 0 if absent. */
  readonly atLeast?: number;
}

/** What was done. */
export interface PairsDone {
  readonly pairs: number;
  readonly tookMs: number;
  /** Processor time of the worker, collector included. */
  readonly processorUs: number;
}

/** Many callers on one name. All instants are on the machine's clock, which all workers share. */
export interface Crowd {
  readonly task: "crowd";
  /** The name that all of them want. */
  readonly lock: string;
  readonly callers: number;
  /** How long a section lasts; 0 is an empty one. */
  readonly sectionMs: number;
  readonly fromMs: number;
  readonly untilMs: number;
  /** From here on sections are not empty but yield to the event loop, so that an overlap would be seen; then all ends. */
  readonly checkUntilMs: number;
}

/** The result of a crowd. Callers that still wait at its end are left waiting. */
export interface CrowdDone {
  /** For each section its caller, and when it was asked for, began and ended: four numbers. */
  readonly sections: Float64Array;
  /** Since when each caller waits that waits at the end of the measured time. */
  readonly waitingSinceMs: readonly number[];
  /** Processor time of the worker in the measured time. */
  readonly processorUs: number;
}

/** Part of a ring in which each process publishes to the next one, after a pause. */
export interface Hop {
  readonly task: "hop";
  readonly index: number;
  readonly ring: number;
  readonly pauseMs: number;
  readonly untilMs: number;
}

/** A message that came to a process of the ring: when it was to be sent, and when it was there. */
export interface HopDone {
  readonly sentAtMs: number;
  readonly cameAtMs: number;
}

/** One waits for a name that is held all the time. */
export interface Wait {
  readonly task: "wait";
  readonly seconds: number;
}

/** Be the one that is waited for, on each of these servers. */
export interface Keep {
  readonly task: "keep";
  readonly ports: readonly number[];
}

/** Leases to hold at the same time. */
export interface Hold {
  readonly task: "hold";
  readonly leases: number;
}

/** What the leases take of the process's memory. */
export interface HoldDone {
  readonly bytes: number;
}

/** Look on for a while. */
export interface Watch {
  readonly task: "watch";
  readonly seconds: number;
}

/** Processor time of the worker meanwhile. */
export interface WatchDone {
  readonly processorUs: number;
}

/** Whatever it is, while somebody looks where the processor time goes. */
export interface ProfileOf {
  readonly task: "profile";
  readonly order: Exclude<Order, ProfileOf | TraceOf>;
}

/**
 * Whose code was at work: the lock's, its client's, Node's JavaScript, the event loop and the kernel, the collector,
 * ours that measures.
 */
export type Share = "library" | "client" | "node" | "loop" | "collector" | "bench";

/** Processor time by whose code it was, in µs, and the functions of the lock's own code that took the most. */
export interface Profile {
  readonly us: Readonly<Record<Share, number>>;
  readonly heaviest: readonly { readonly name: string; readonly us: number }[];
}

/** The result of an order, and what it cost. */
export interface Profiled<Result> {
  readonly result: Result;
  readonly profile: Profile;
}

/** Runs the given work while the times of writes to and reads from sockets are recorded. */
export interface TraceOf {
  readonly task: "trace";
  readonly order: Exclude<Order, ProfileOf | TraceOf>;
}

/** Instants on the machine's clock, in their order. */
export interface Traffic {
  readonly writtenMs: readonly number[];
  /** Answers to requests. */
  readonly answeredMs: readonly number[];
  /** Messages of a channel. */
  readonly toldMs: readonly number[];
}

/** What an order came to, and when something was said meanwhile. */
export interface Traced<Result> {
  readonly result: Result;
  readonly traffic: Traffic;
}

/** Any of them. */
export type Order = OneAtATime | Pairs | Crowd | Hop | Wait | Keep | Hold | Watch | ProfileOf | TraceOf;

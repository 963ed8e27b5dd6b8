/** The orders that the measuring process sends to a worker, and the replies. */

/** Acquire and release free locks, one at a time. */
export interface OneAtATime {
  readonly task: "one-at-a-time";
  readonly seconds: number;
}

/** The times of pairs, in µs. */
export interface Times {
  readonly p50: number;
  readonly p99: number;
}

/** Acquire and release free locks, `parallel` at a time. */
export interface Pairs {
  readonly task: "pairs";
  readonly seconds: number;
  readonly parallel: number;
  /**
   * The beginning of the names of the locks. Two processes need different prefixes, or their locks would not be free.
   * "order" if absent.
   */
  readonly prefix?: string;
  /** The minimum number of pairs. The run takes longer than `seconds` if these do. 0 if absent. */
  readonly atLeast?: number;
}

/** The result of `Pairs`. */
export interface PairsDone {
  readonly pairs: number;
  readonly tookMs: number;
  /** Processor time of the worker, including garbage collection. */
  readonly processorUs: number;
}

/** Run many callers on one name. All times are on the machine's clock, which all workers share. */
export interface Crowd {
  readonly task: "crowd";
  /** The lock that all callers want. */
  readonly lock: string;
  readonly callers: number;
  /** Length of a section. 0 means that sections are empty. */
  readonly sectionMs: number;
  readonly fromMs: number;
  readonly untilMs: number;
  /** The end. From `untilMs` to here, empty sections yield to the event loop instead, so that an overlap would be seen. */
  readonly checkUntilMs: number;
}

/** The result of a crowd. Callers that still wait at its end are left waiting. */
export interface CrowdDone {
  /** Four numbers per section: its caller, and the times of its request, start and end. */
  readonly sections: Float64Array;
  /** The start of each wait that is not over at the end of the measured time. */
  readonly waitingSinceMs: readonly number[];
  /** Processor time of the worker in the measured time. */
  readonly processorUs: number;
}

/** Be part of a ring in which each process publishes to the next one after a pause. */
export interface Hop {
  readonly task: "hop";
  readonly index: number;
  readonly ring: number;
  readonly pauseMs: number;
  readonly untilMs: number;
}

/** A message that a process of the ring received: when it was due to be sent, and when it arrived. */
export interface HopDone {
  readonly sentAtMs: number;
  readonly cameAtMs: number;
}

/** Wait for a name that is held all the time. */
export interface Wait {
  readonly task: "wait";
  readonly seconds: number;
}

/** Acquire the name that others wait for, on each of these servers, and keep it. */
export interface Keep {
  readonly task: "keep";
  readonly ports: readonly number[];
}

/** Hold leases at the same time. */
export interface Hold {
  readonly task: "hold";
  readonly leases: number;
  /** Time between the last grant and the end of the order, in ms. 0 if absent. */
  readonly settleMs?: number;
}

/** The memory of the process that the leases use at the end. */
export interface HoldDone {
  readonly bytes: number;
}

/** Do nothing for a while and measure the processor time. */
export interface Watch {
  readonly task: "watch";
  readonly seconds: number;
}

/** The processor time of the worker meanwhile. */
export interface WatchDone {
  readonly processorUs: number;
}

/** Carry out an order and record where the processor time goes. */
export interface ProfileOf {
  readonly task: "profile";
  readonly order: Exclude<Order, ProfileOf | TraceOf>;
}

/**
 * Whose code ran: the lock library, its client library, Node's JavaScript, the event loop and the kernel, the garbage
 * collector, or the benchmark.
 */
export type Share = "library" | "client" | "node" | "loop" | "collector" | "bench";

/** Processor time in µs by whose code used it, and the functions of the lock library that took the most. */
export interface Profile {
  readonly us: Readonly<Record<Share, number>>;
  readonly heaviest: readonly { readonly name: string; readonly us: number }[];
}

/** The result of an order, and its profile. */
export interface Profiled<Result> {
  readonly result: Result;
  readonly profile: Profile;
}

/** Carry out an order and record the times of writes to and reads from sockets. */
export interface TraceOf {
  readonly task: "trace";
  readonly order: Exclude<Order, ProfileOf | TraceOf>;
}

/** Times on the machine's clock, in chronological order. */
export interface Traffic {
  readonly writtenMs: readonly number[];
  /** Replies to requests. */
  readonly answeredMs: readonly number[];
  /** Pub/sub messages. */
  readonly toldMs: readonly number[];
}

/** The result of an order, and the traffic meanwhile. */
export interface Traced<Result> {
  readonly result: Result;
  readonly traffic: Traffic;
}

/** Any order. */
export type Order = OneAtATime | Pairs | Crowd | Hop | Wait | Keep | Hold | Watch | ProfileOf | TraceOf;

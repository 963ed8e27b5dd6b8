/**
 * What a run leaves behind: one record per operation, and what else happened around it.
 *
 * Everything that judges a run reads these records and nothing else, so the simulation, the fault runs and a
 * test written by hand are judged by the same code. All instants are milliseconds on one monotonic clock of the
 * recorder, which it does not share with the library: a fault in a clock cannot bend the record.
 */

/** What is locked, as the library calls it. */
export type Kind =
  | "mutex"
  | "reentrant-mutex"
  | "read-write-lock"
  | "semaphore"
  | "multi-lock"
  | "election"
  | "redlock"
  | "condition"
  | "count-down-latch"
  | "barrier";

/** What was asked of the lock. `enqueue`, `leave` and `die` occur only in what models/fifo.ts makes of a history. */
export type Verb =
  | "acquire"
  | "extend"
  | "release"
  | "force-release"
  | "downgrade"
  | "upgrade"
  | "resize"
  | "set-count"
  | "count-down"
  | "await"
  | "count"
  | "arrive"
  | "wait"
  | "signal"
  | "reset"
  | "enqueue"
  | "leave"
  | "die";

/** `ok`: success was reported. `no`: definitely refused, without effect. `info`: anything else, so perhaps done. */
export type Outcome = "ok" | "no" | "info";

/**
 * Why an operation was refused.
 *
 * - `busy`: the lock answered that another client has it, once or until the time to wait was over
 * - `gave-up`: it waited in the queue until its deadline or its abort, so a grant may have crossed its leaving
 * - `not-owner`: the lock answered that the caller does not hold it, even if no other client was granted it since
 * - `not-sent`: refused in the caller's process, nothing reached the server
 */
export type Refusal = "busy" | "gave-up" | "not-owner" | "not-sent";

/** Whether a lease on a read-write lock shares it. */
export type Mode = "read" | "write";

/** What an operation was given. What does not apply to its verb is absent. */
export interface Arguments {
  /** Length of the lease on the server. Absent for an acquire that was handed over locally and began no new lease. */
  readonly leaseMs?: number;
  /** How long the server may keep it at most, where that is more: who adopts a lease has what is left of it. */
  readonly longestMs?: number;
  /** How long it was willing to wait; absent means forever. */
  readonly waitMs?: number;
  /** When its signal was aborted. */
  readonly abortedAtMs?: number;
  /** Permits wanted or given back, or the new limit of a resize. Absent means one. */
  readonly permits?: number;
  readonly mode?: Mode;
  /** Whether it ends all holds and is granted before all who wait. */
  readonly steals?: boolean;
  /** The count set, or how much is counted down. Absent means one. */
  readonly count?: number;
  /** Under which id a count-down counts once. */
  readonly callerId?: string;
}

/**
 * One call of a verb.
 *
 * Renewals that the library makes by itself are recorded as `extend` too: the models judge the end of a lease on
 * the server by them.
 */
export interface Operation {
  readonly type: "operation";
  /** Unique in its history. */
  readonly id: number;
  readonly process: string;
  /** Rises each time the process of this name is started again. */
  readonly incarnation: number;
  readonly lockName: string;
  readonly kind: Kind;
  readonly verb: Verb;
  readonly args: Arguments;
  readonly callMs: number;
  /** Infinity if it never returned; an `info` operation may have a return and take effect after it all the same. */
  readonly returnMs: number;
  readonly outcome: Outcome;
  readonly refusal?: Refusal;
  /** Id of the claim, as the server knows the holder. */
  readonly owner: string;
  /** Id of the acquire whose lease this is about; for an acquire its own id. */
  readonly leaseId: number;
  /** Null if there is none or it is unknown. */
  readonly token: number | null;
  /** Until when the library says the lease can be relied upon, on the recorder's clock; null if it said nothing. */
  readonly validUntilMs: number | null;
  /** What a count or count-down answered; of a barrier which generation passed, broke or began; how many a signal reached. */
  readonly result?: number;
  /** As which of its parties the caller passed a barrier; absent if it did not. */
  readonly index?: number;
  /**
   * When an answer of the server that says so reached the process of an `ok` operation; null if none had when the
   * operation returned; absent if this was not observed.
   */
  readonly answeredMs?: number | null;
  /** When the proxy saw the request of an `info` operation delivered to the server; absent if it was not seen. */
  readonly deliveredMs?: number;
}

/** The lease's signal was aborted. */
export interface Lost {
  readonly type: "lost";
  readonly atMs: number;
  readonly process: string;
  readonly lockName: string;
  readonly leaseId: number;
}

/** What the lease said of itself when it was asked. */
export interface Held {
  readonly type: "held";
  readonly atMs: number;
  readonly process: string;
  readonly lockName: string;
  readonly leaseId: number;
  readonly isHeld: boolean;
  readonly token: number | null;
  /** As in an operation; null if the sample does not know it. */
  readonly validUntilMs: number | null;
}

/** One turn of a process's event loop that was seen to run. Between two turns it was idle or stood still. */
export interface Turn {
  readonly type: "turn";
  readonly process: string;
  readonly beganMs: number;
  readonly endedMs: number;
  /** True if the process had no time left after it to do what was due. */
  readonly wasInterrupted?: boolean;
}

/** The server's word that an acquire is in the queue reached its caller. */
export interface Enqueued {
  readonly type: "enqueued";
  readonly atMs: number;
  readonly lockName: string;
  readonly operationId: number;
}

/** A waiter that the server may have taken for dead from `atMs` on: it missed its heartbeat, or had no ear. */
export interface Missed {
  readonly type: "missed";
  readonly atMs: number;
  readonly lockName: string;
  readonly operationId: number;
}

/** An access to the resource that the lock guards, in the order in which the resource saw it. */
export interface Effect {
  readonly type: "effect";
  readonly atMs: number;
  readonly resource: string;
  /** A counter of the resource, which rises with every effect that it saw, accepted or not. */
  readonly sequence: number;
  readonly process: string;
  readonly lockName: string;
  readonly leaseId: number;
  readonly token: number | null;
  readonly isAccepted: boolean;
  /** Whether the writer heard that it was accepted. */
  readonly isAcknowledged: boolean;
  /** What was added; unique per resource. */
  readonly value: string;
}

/** What the guarded thing holds at the end. */
export interface FinalState {
  readonly type: "final-state";
  readonly resource: string;
  readonly values: readonly string[];
}

/** An observer read the lock on the server just before or after an operation. */
export interface Observation {
  readonly type: "observation";
  readonly operationId: number;
  readonly when: "before" | "after";
  readonly atMs: number;
  readonly lockName: string;
  /** Null if the lock was free. */
  readonly owner: string | null;
  /** Until when the server will keep it, on the recorder's clock; null without a holder. */
  readonly expiresAtMs: number | null;
}

/** The owners found in any key of a lock, holding or waiting. */
export interface KeyScan {
  readonly type: "key-scan";
  readonly atMs: number;
  readonly lockName: string;
  readonly owners: readonly string[];
  /** Whether every server could be reached since the operations before it settled. */
  readonly isReachable: boolean;
}

/** A fault from the list J01 to J38, and how we know that it struck. */
export interface Fault {
  readonly type: "fault";
  readonly id: string;
  readonly beganMs: number;
  /** Infinity for what has no end, such as a kill. */
  readonly endedMs: number;
  /** The process or server it struck. */
  readonly target: string;
  /** What was observed. Null means nothing, so the run proves nothing. */
  readonly proof: string | null;
  /** The known requests that it delayed. */
  readonly late?: readonly LateRequest[];
}

/** A request that reached the server late, when its caller no longer waited for an answer. */
export interface LateRequest {
  /** When it was passed on to the server. */
  readonly atMs: number;
  /** Its words, with the names of scripts for their hashes. */
  readonly words: readonly string[];
}

/** What a server said of itself. */
export interface Server {
  readonly type: "server";
  readonly atMs: number;
  readonly name: string;
  readonly runId: string;
  readonly role: "master" | "replica";
  /** Its own wall clock. */
  readonly clockMs: number;
}

/** Any line of a history. */
export type HistoryRecord =
  | Operation
  | Lost
  | Held
  | Turn
  | Enqueued
  | Missed
  | Effect
  | FinalState
  | Observation
  | KeyScan
  | Fault
  | Server;

/**
 * The records of a run: one per operation, and one per other event.
 *
 * All judges read only these records, so the simulation, the fault runs and handwritten tests are judged by the same
 * code. All instants are in ms on one monotonic clock of the recorder. The library does not use that clock, so a clock
 * fault cannot distort the record.
 */

/** The kind of lock, named as in the library. */
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

/** The requested operation. `enqueue`, `leave` and `die` occur only in the operations that models/fifo.ts derives. */
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

/** `ok`: success was reported. `no`: definitely refused, without effect. `info`: unknown, so it may have taken effect. */
export type Outcome = "ok" | "no" | "info";

/**
 * Why an operation was refused.
 *
 * - `busy`: the lock replied that another client has it, once or until the wait limit
 * - `gave-up`: it waited in the queue until its deadline or abort; a grant may have been made just as it left
 * - `not-owner`: the lock replied that the caller does not hold it, even if it was granted to no other client since
 * - `not-sent`: refused in the caller's process; nothing reached the server
 */
export type Refusal = "busy" | "gave-up" | "not-owner" | "not-sent";

/** The mode of a lease on a read-write lock: shared or exclusive. */
export type Mode = "read" | "write";

/** The arguments of an operation. Those that do not apply to its verb are absent. */
export interface Arguments {
  /** The length of the lease on the server. Absent for an acquire that was handed over locally without a new lease. */
  readonly leaseMs?: number;
  /** The longest time for which the server may keep the lease, if that is more, as for an adopted lease. */
  readonly longestMs?: number;
  /** The wait limit; absent means forever. */
  readonly waitMs?: number;
  /** When its signal was aborted. */
  readonly abortedAtMs?: number;
  /** The number of permits acquired or released, or the new limit of a resize. Absent means one. */
  readonly permits?: number;
  readonly mode?: Mode;
  /** Whether it ends all holds and is granted before all waiters. */
  readonly steals?: boolean;
  /** The count to set, or the amount to count down. Absent means one. */
  readonly count?: number;
  /** The id under which a count-down counts only once. */
  readonly callerId?: string;
}

/**
 * One call of a verb.
 *
 * Automatic renewals are recorded as `extend` too, because the models need them to know when a lease ends on the
 * server.
 */
export interface Operation {
  readonly type: "operation";
  /** Unique in its history. */
  readonly id: number;
  readonly process: string;
  /** Increases each time the process with this name is restarted. */
  readonly incarnation: number;
  readonly lockName: string;
  readonly kind: Kind;
  readonly verb: Verb;
  readonly args: Arguments;
  readonly callMs: number;
  /** Infinity if it never returned. An `info` operation may have returned and still take effect later. */
  readonly returnMs: number;
  readonly outcome: Outcome;
  readonly refusal?: Refusal;
  /** The id of the claim, by which the server knows the holder. */
  readonly owner: string;
  /** The id of the acquire that began this lease; for an acquire its own id. */
  readonly leaseId: number;
  /** Null if there is none or it is unknown. */
  readonly token: number | null;
  /** The reported end of validity, on the recorder's clock; null if nothing was reported. */
  readonly validUntilMs: number | null;
  /**
   * The result of a count or count-down; for a barrier, the generation that passed, broke or began; for a signal, the
   * number of reached waiters.
   */
  readonly result?: number;
  /** The caller's index among the parties that passed a barrier; absent if it did not pass. */
  readonly index?: number;
  /**
   * When a confirming reply reached the process of an `ok` operation; null if none had when the operation returned;
   * absent if this was not observed.
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

/** A sample of what the lease reports about itself. */
export interface Held {
  readonly type: "held";
  readonly atMs: number;
  readonly process: string;
  readonly lockName: string;
  readonly leaseId: number;
  readonly isHeld: boolean;
  readonly token: number | null;
  /** As in an operation; null if the sample has no such value. */
  readonly validUntilMs: number | null;
}

/** One observed turn of a process's event loop. Between two turns, the process was idle or did not run. */
export interface Turn {
  readonly type: "turn";
  readonly process: string;
  readonly beganMs: number;
  readonly endedMs: number;
  /** True if the process then had no time left to do what was due. */
  readonly wasInterrupted?: boolean;
}

/** A reply that an acquire is queued reached its caller. */
export interface Enqueued {
  readonly type: "enqueued";
  readonly atMs: number;
  readonly lockName: string;
  readonly operationId: number;
}

/** A waiter that the server may consider dead from `atMs` on: it did not poll in time, or had no subscriber. */
export interface Missed {
  readonly type: "missed";
  readonly atMs: number;
  readonly lockName: string;
  readonly operationId: number;
}

/** A write to the protected resource, in the order in which the resource received it. */
export interface Effect {
  readonly type: "effect";
  readonly atMs: number;
  readonly resource: string;
  /** The resource's counter, which increases with every received effect, accepted or not. */
  readonly sequence: number;
  readonly process: string;
  readonly lockName: string;
  readonly leaseId: number;
  readonly token: number | null;
  readonly isAccepted: boolean;
  /** Whether the writer received the reply that it was accepted. */
  readonly isAcknowledged: boolean;
  /** The added value; unique per resource. */
  readonly value: string;
}

/** The values in the protected resource at the end. */
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
  /** When its lease ends on the server, on the recorder's clock; null without a holder. */
  readonly expiresAtMs: number | null;
}

/** The owners found in all keys of a lock, holding or waiting. */
export interface KeyScan {
  readonly type: "key-scan";
  readonly atMs: number;
  readonly lockName: string;
  readonly owners: readonly string[];
  /** Whether every server could be reached since the operations before it settled. */
  readonly isReachable: boolean;
}

/** A fault from the list J01 to J38, with the proof that it struck. */
export interface Fault {
  readonly type: "fault";
  readonly id: string;
  readonly beganMs: number;
  /** Infinity for a fault without an end, such as a kill. */
  readonly endedMs: number;
  /** The process or server it struck. */
  readonly target: string;
  /** What was observed. Null: nothing was, so the run proves nothing. */
  readonly proof: string | null;
  /** The known requests that it delayed. */
  readonly late?: readonly LateRequest[];
}

/** A request that reached the server when its caller no longer waited for the reply. */
export interface LateRequest {
  /** When it was forwarded to the server. */
  readonly atMs: number;
  /** The words of the request, with script names instead of hashes. */
  readonly words: readonly string[];
}

/** What a server reports about itself. */
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

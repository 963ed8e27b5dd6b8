/**
 * The library that a client process uses: Holdfast, or a peer.
 *
 * A subject describes its features and hides its implementation. All instants are on the recorder's clock,
 * CLOCK_MONOTONIC of the machine in ms, which all processes share. The subject itself is given another clock.
 */
import type { Kind, Mode, Refusal } from "../history/records.js";
import type { Letter } from "./cell.js";
import type { Reach } from "./stage.js";

/** The failover grace of the library. A quorum has no such option; `off` is a deliberate mistake there. */
export type Grace = "auto" | "strict" | "off";

/**
 * How clients hold: with `acquire` and `release`, with `run`, which does not await the release, or with the same `run` of
 * a mutex that the process retains for a third of the lease.
 */
export type Releases = "awaited" | "background" | "retained";

/** How a subject reaches its server, and its clock settings. */
export interface SubjectSettings {
  readonly port: number;
  /** How to find several servers; ignored for peers, which use one. */
  readonly reach: Reach;
  /** The option `failoverGrace` of Holdfast. */
  readonly grace: Grace;
  /** How a lease is released; ignored for peers, which have only one way. */
  readonly releases: Releases;
  /** The command timeout, in ms. */
  readonly commandTimeoutMs: number;
  /** The current offset of its wall clock, in ms; ignored for peers that read the real clock. */
  readonly wallOffsetMs: () => number;
  /** The names of the deliberate mistakes of the client. Empty for the unchanged product. */
  readonly mutations: readonly string[];
}

/** An acquire. */
export interface Request {
  readonly lockName: string;
  readonly leaseMs: number;
  /** 0 tries once; absent waits forever. */
  readonly waitMs?: number;
  /** Whether the subject renews the lease automatically. */
  readonly renew: boolean;
  readonly permits: number;
  /** The number of permits of a semaphore. */
  readonly limit: number;
  readonly mode?: Mode;
  readonly signal?: AbortSignal;
  /** The other names of a multi-lock. */
  readonly otherNames?: readonly string[];
  /** Whether callers of this process may share a queue place and pass the lock on without the server. */
  readonly isShared?: boolean;
  /** Called during `acquire` with the owner that the server will see, if it is known by then. */
  readonly onOwner?: (owner: string) => void;
  /** Called when a reply says that this request is queued. */
  readonly onQueued?: (atMs: number) => void;
  /** The owner id for subjects with caller-chosen owners; only a hint for others. */
  readonly owner: string;
}

/** The result of an acquire, release or extend that did not succeed. */
export interface Refused {
  readonly outcome: "no" | "info";
  /** Only for `no`. */
  readonly refusal?: Refusal;
  /** For the report. */
  readonly message: string;
}

/** A renewal that a subject starts automatically. */
export interface Renewal {
  /** The member of a multi-lock, or the only lock. */
  readonly lockName: string;
  readonly leaseMs: number;
  /**
   * Settles when the renewal is answered or given up. Never rejects; the result says whether it was refused or is unknown.
   */
  readonly ended: Promise<undefined | Refused>;
}

/** A member of a multi-lock, held with the others. */
export interface Part {
  readonly lockName: string;
  readonly owner: string;
  readonly token: number | null;
  /** How the release of this member ended; call it after that of the whole. */
  released?(): Promise<undefined | Refused>;
  /** When its release was first sent. That may be before the caller's release, if another member was lost. */
  releaseSentMs?(): number | undefined;
  /** As in `Held`. */
  answered?(verb: "extend" | "release"): number | null | undefined;
}

/** A hold. */
export interface Held {
  /** The members of a multi-lock. */
  readonly parts?: readonly Part[];
  /** When a "granted" reply reached this process; null: never; absent if not observed. */
  readonly answeredMs?: number | null;
  /**
   * When a reply that confirms the last extension, or the release, reached this process. Null: none has; undefined:
   * not observed, or no request was necessary. Absent for a subject whose store is not observed.
   */
  answered?(verb: "extend" | "release"): number | null | undefined;
  /**
   * Calls the listener before each automatic renewal is sent. A subject with this function need not call `onRenewed`.
   */
  onRenewal?(listener: (renewal: Renewal) => void): void;
  /** Acquires a reentrant mutex again. */
  again?(): Promise<Held | Refused>;
  /** Downgrades from writer to reader of a read-write lock. */
  downgrade?(): Promise<undefined | Refused>;
  /** The owner id on the server; leases that share a claim have a suffix to be unique. */
  readonly owner: string;
  /** Whether it continues a claim that was granted to an earlier caller, without a new lease on the server. */
  readonly isHandedOn?: boolean;
  readonly token: number | null;
  /** The end of validity that the subject reports now; null if it reports none. */
  validUntilMs(): number | null;
  isHeld(): boolean;
  /** Calls the listener once when the subject reports a loss. */
  onLost(listener: () => void): void;
  /** Calls the listener after each automatic renewal, with its times and result. */
  onRenewed(listener: (callMs: number, returnMs: number, leaseMs: number, outcome: "ok" | "no" | "info") => void): void;
  extend(leaseMs: number): Promise<undefined | Refused>;
  /** Releasing fewer `permits` than held is only for semaphores that support it. */
  release(): Promise<undefined | Refused>;
}

/** A connected subject. */
export interface Connection {
  acquire(request: Request, kind: Kind): Promise<Held | Refused>;
  /** Operations of the latch; absent if the subject has none. */
  readonly latch?: Latch;
  /**
   * Acquires the mutex, waits for a signal of its condition (1 if it came, 0 if `waitMs` passed first) or sends one
   * (the number of signaled waiters), and releases the mutex; absent if not supported.
   */
  condition?(lockName: string, act: "wait" | "signal", waitMs: number): Promise<number>;
  /** Operations of the barrier; absent if the subject has none. */
  readonly barrier?: Barrier;
  /** Ends everything that it started; the objects it was given stay open. */
  close(): Promise<void>;
}

/** The result of a call of `arrive` that the barrier has answered. */
export interface Arrived {
  readonly what: "passed" | "broke";
  readonly generation: number;
  /** The index of the party, if the barrier passed. */
  readonly index?: number;
}

/** A barrier. */
export interface Barrier {
  arrive(lockName: string, parties: number, waitMs: number): Promise<Arrived>;
  /** @returns the generation that begins */
  reset(lockName: string, parties: number): Promise<number>;
}

/** A count-down latch. */
export interface Latch {
  setCount(lockName: string, count: number): Promise<boolean>;
  /** With an id it counts once per count that was set; without one, it counts once. */
  countDown(lockName: string, callerId?: string): Promise<number>;
  count(lockName: string): Promise<number>;
  /** False if `waitMs` passed first. */
  await(lockName: string, waitMs: number): Promise<boolean>;
}

/** A lock library. */
export interface Subject {
  readonly name: string;
  readonly version: string;
  /** The settings under which it runs, for the report. */
  readonly settings: string;
  readonly letters: readonly Letter[];
  connect(settings: SubjectSettings): Promise<Connection>;
}

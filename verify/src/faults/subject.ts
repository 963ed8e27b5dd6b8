/**
 * What a client process drives: this library, or a peer in the same place.
 *
 * A subject says what it can do and hides how. All instants are on the recorder's clock, which is CLOCK_MONOTONIC of
 * the machine in ms, the same in every process, and never the clock that the subject is given.
 */
import type { Kind, Mode, Refusal } from "../history/records.js";
import type { Letter } from "./cell.js";
import type { Reach } from "./stage.js";

/** What the library is told of failovers; of a quorum, which has no choice, `off` makes a mistake on purpose. */
export type Grace = "auto" | "strict" | "off";

/** How clients hold: by `acquire` and `release`, or by `run`, which does not await the release. */
export type Releases = "awaited" | "background";

/** How a subject reaches its server, and what it is told of time. */
export interface SubjectSettings {
  readonly port: number;
  /** How to find the servers, if there are several; for peers, which are driven on one, ignored. */
  readonly reach: Reach;
  /** As the option `failoverGrace` of this library. */
  readonly grace: Grace;
  /** How a lease is released; peers, which have one way, ignore it. */
  readonly releases: Releases;
  /** How long the server is given to answer, in ms. */
  readonly commandTimeoutMs: number;
  /** How far its wall clock is off, in ms, asked again at every reading; for peers that read the real one, ignored. */
  readonly wallOffsetMs: () => number;
  /** The names of the deliberate mistakes of the client. Empty for the unchanged product. */
  readonly mutations: readonly string[];
}

/** One acquire. */
export interface Request {
  readonly lockName: string;
  readonly leaseMs: number;
  /** 0 tries once; absent waits forever. */
  readonly waitMs?: number;
  /** Whether the subject renews it by itself. */
  readonly renew: boolean;
  readonly permits: number;
  /** Of a semaphore. */
  readonly limit: number;
  readonly mode?: Mode;
  readonly signal?: AbortSignal;
  /** Of a multi-lock: the names beside `lockName`. */
  readonly otherNames?: readonly string[];
  /** Whether callers of this process may share a place in the queue and pass the lock on without the server. */
  readonly isShared?: boolean;
  /** Told while `acquire` is being called: the owner that the server will see, where that is known so early. */
  readonly onOwner?: (owner: string) => void;
  /** Told when the server's word has come that this request stands in the queue. */
  readonly onQueued?: (atMs: number) => void;
  /** Id under which a subject that has owners of its own choosing shall ask; for others only a hint. */
  readonly owner: string;
}

/** What came of an acquire, a release or an extend that did not succeed. */
export interface Refused {
  readonly outcome: "no" | "info";
  /** Only for `no`. */
  readonly refusal?: Refusal;
  /** For the report. */
  readonly message: string;
}

/** A renewal that a subject begins by itself. */
export interface Renewal {
  /** Which of several locks that are held as one; the only one otherwise. */
  readonly lockName: string;
  readonly leaseMs: number;
  /** Settles, and never rejects, when it is answered or given up; what was refused or unknown says so. */
  readonly ended: Promise<undefined | Refused>;
}

/** A member of a multi-lock, held with the others. */
export interface Part {
  readonly lockName: string;
  readonly owner: string;
  readonly token: number | null;
  /** How the release of this member ended; after that of the whole. */
  released?(): Promise<undefined | Refused>;
  /** When its release was first sent, which may be before anybody asked for it: when another member was lost. */
  releaseSentMs?(): number | undefined;
  /** As that of the whole. */
  answered?(verb: "extend" | "release"): number | null | undefined;
}

/** Something held. */
export interface Held {
  /** Of a multi-lock: its members. */
  readonly parts?: readonly Part[];
  /** When an answer that says "granted" reached this process; null: never; absent if this was not observed. */
  readonly answeredMs?: number | null;
  /**
   * When an answer that says that the last extension, or the release, was done reached this process; null: none has;
   * undefined: not observed, or there was nothing to ask the server for. Absent for a subject whose store is not observed.
   */
  answered?(verb: "extend" | "release"): number | null | undefined;
  /** Calls before each renewal by the subject itself is sent. A subject that has this need not call `onRenewed`. */
  onRenewal?(listener: (renewal: Renewal) => void): void;
  /** Holds it once more, of a re-entrant mutex. */
  again?(): Promise<Held | Refused>;
  /** Downgrades from writer to reader of a read-write lock. */
  downgrade?(): Promise<undefined | Refused>;
  /** As the server knows the holder; unique per lease, by a suffix for those that share a claim. */
  readonly owner: string;
  /** Whether it continues a claim that was granted to an earlier caller, without a new lease on the server. */
  readonly isHandedOn?: boolean;
  readonly token: number | null;
  /** The current end of validity that the subject reports. Null if it reports none. */
  validUntilMs(): number | null;
  isHeld(): boolean;
  /** Calls once when the subject says that it is lost; never, if it does not say so. */
  onLost(listener: () => void): void;
  /** Calls after each renewal by the subject itself: when it was sent, when it was answered, and what came of it. */
  onRenewed(listener: (callMs: number, returnMs: number, leaseMs: number, outcome: "ok" | "no" | "info") => void): void;
  extend(leaseMs: number): Promise<undefined | Refused>;
  /** `permits` less than held only for a semaphore that can. */
  release(): Promise<undefined | Refused>;
}

/** A connected subject. */
export interface Connection {
  acquire(request: Request, kind: Kind): Promise<Held | Refused>;
  /** Operations of the latch; absent if the subject has none. */
  readonly latch?: Latch;
  /**
   * Takes the mutex, and waits for a signal of its condition (1 if it came, 0 if `waitMs` passed first) or gives one (how many
   * it reached), and gives the mutex back; absent if the subject has none.
   */
  condition?(lockName: string, act: "wait" | "signal", waitMs: number): Promise<number>;
  /** Operations of the barrier; absent if the subject has none. */
  readonly barrier?: Barrier;
  /** Everything that it started comes to an end; what it was lent stays open. */
  close(): Promise<void>;
}

/** How a call of `arrive` ended that was told by the barrier. */
export interface Arrived {
  readonly what: "passed" | "broke";
  readonly generation: number;
  /** As which of the parties; of one that passed. */
  readonly index?: number;
}

/** A barrier for so many parties. */
export interface Barrier {
  arrive(lockName: string, parties: number, waitMs: number): Promise<Arrived>;
  /** @returns the generation that begins */
  reset(lockName: string, parties: number): Promise<number>;
}

/** A count-down latch. */
export interface Latch {
  setCount(lockName: string, count: number): Promise<boolean>;
  /** Under an id it counts once for each count that is set, without one once in all. */
  countDown(lockName: string, callerId?: string): Promise<number>;
  count(lockName: string): Promise<number>;
  /** False if `waitMs` passed first. */
  await(lockName: string, waitMs: number): Promise<boolean>;
}

/** A library that locks. */
export interface Subject {
  readonly name: string;
  readonly version: string;
  /** The settings under which it runs, for the report. */
  readonly settings: string;
  readonly letters: readonly Letter[];
  connect(settings: SubjectSettings): Promise<Connection>;
}

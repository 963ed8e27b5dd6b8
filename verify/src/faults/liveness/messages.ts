/** What a liveness run and its processes say to each other. */
import type { Letter } from "../cell.js";
import type { RecorderSettings } from "../programs/recorder.js";
import type { Reach } from "../stage.js";

/** Client libraries that a liveness cell can be played with. */
export const CLIENT_LIBRARIES = ["ioredis", "node-redis", "glide"] as const;

/** One of them. */
export type ClientLibrary = (typeof CLIENT_LIBRARIES)[number];

/** What a process is started with, as JSON in its first argument. */
export interface ActorSettings extends RecorderSettings {
  /** `holdfast`, `holdfast@BUILD`, or a peer. */
  readonly subject: string;
  readonly library: ClientLibrary;
  readonly letter: Letter;
  readonly port: number;
  readonly reach: Reach;
  readonly commandTimeoutMs: number;
}

/** What every acquire is given. */
export interface Asking {
  readonly lockName: string;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly renew?: boolean;
}

/** What can be asked of a process. */
export type Call =
  /** Acquires, and holds until `release`. Resolves when it is granted. */
  | ({ readonly verb: "hold" } & Asking)
  | { readonly verb: "release"; readonly lockName: string }
  /** Begins so many acquires, each a claim of its own, and releases each after `holdMs`. Resolves when they have begun. */
  | ({ readonly verb: "wait"; readonly count: number; readonly holdMs: number } & Asking)
  /** Acquires, holds for `holdMs`, releases, and begins again, until `rest`. */
  | ({ readonly verb: "contend"; readonly holdMs: number } & Asking)
  | { readonly verb: "rest" }
  /** Acquires once. */
  | ({ readonly verb: "ask" } & Asking)
  /** How many claims wait on the server; undefined if the subject cannot say. */
  | { readonly verb: "waiters"; readonly lockName: string }
  /** Lets so many callers wait, all of which give up at one instant, while it holds `otherName`. */
  | {
      readonly verb: "stampede";
      readonly lockName: string;
      readonly otherName: string;
      readonly count: number;
      readonly waitMs: number;
      readonly leaseMs: number;
      readonly renew: boolean;
    };

/** The answer to `ask`. */
export interface AskAnswer {
  readonly isGranted: boolean;
  /** Why not, with the name of the error; empty if it was granted. */
  readonly message: string;
}

/** The answer to `stampede`. */
export interface StampedeAnswer {
  /** When all callers gave up. */
  readonly deadlineMs: number;
  /** From the deadline to the end of the last acquire. */
  readonly settledAfterMs: number;
  /** The longest time from one turn of the event loop to the next, from shortly before the deadline on. */
  readonly stallMs: number;
  readonly timedOut: number;
  /** Other ends, by the first word of their messages. */
  readonly others: Readonly<Record<string, number>>;
  readonly isOtherLost: boolean;
}

/** A call on its way. */
export interface Asked {
  readonly number: number;
  readonly call: Call;
}

/** What a process says: the answer to a call, or something that happened. */
export type Said =
  | { readonly type: "answer"; readonly number: number; readonly value?: unknown; readonly error?: string }
  | ({ readonly type: "event" } & ActorEvent);

/** Something that happened in a process. */
export interface ActorEvent {
  readonly what: "granted" | "released" | "refused" | "lost" | "warning";
  readonly atMs: number;
  readonly lockName: string;
  readonly message: string;
}

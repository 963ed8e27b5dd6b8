/** The messages between a liveness run and its processes. */
import type { Letter } from "../cell.js";
import type { RecorderSettings } from "../programs/recorder.js";
import type { Reach } from "../stage.js";

/** The client libraries that liveness cells support. */
export const CLIENT_LIBRARIES = ["ioredis", "node-redis", "glide"] as const;

/** The name of a client library. */
export type ClientLibrary = (typeof CLIENT_LIBRARIES)[number];

/** The settings of a process, as JSON in its first argument. */
export interface ActorSettings extends RecorderSettings {
  /** `holdfast`, `holdfast@BUILD`, or a peer. */
  readonly subject: string;
  readonly library: ClientLibrary;
  readonly letter: Letter;
  readonly port: number;
  readonly reach: Reach;
  readonly commandTimeoutMs: number;
}

/** The options of every acquire. */
export interface Asking {
  readonly lockName: string;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly renew?: boolean;
}

/** A command to a process. */
export type Call =
  /** Acquires, and holds until `release`. Resolves on the grant. */
  | ({ readonly verb: "hold" } & Asking)
  | { readonly verb: "release"; readonly lockName: string }
  /**
   * Starts that many acquires with separate claims, and releases each after `holdMs`. Resolves when they have
   * started.
   */
  | ({ readonly verb: "wait"; readonly count: number; readonly holdMs: number } & Asking)
  /** Acquires, holds for `holdMs`, releases, and repeats that until `rest`. */
  | ({ readonly verb: "contend"; readonly holdMs: number } & Asking)
  | { readonly verb: "rest" }
  /** Acquires once. */
  | ({ readonly verb: "ask" } & Asking)
  /** The number of claims that wait on the server; undefined if the subject cannot tell. */
  | { readonly verb: "waiters"; readonly lockName: string }
  /** Makes that many callers wait, all of which time out at the same instant, while it holds `otherName`. */
  | {
      readonly verb: "stampede";
      readonly lockName: string;
      readonly otherName: string;
      readonly count: number;
      readonly waitMs: number;
      readonly leaseMs: number;
      readonly renew: boolean;
    };

/** The reply to `ask`. */
export interface AskAnswer {
  readonly isGranted: boolean;
  /** The reason with the error's name; empty if it was granted. */
  readonly message: string;
}

/** The reply to `stampede`. */
export interface StampedeAnswer {
  /** When all callers timed out. */
  readonly deadlineMs: number;
  /** From the deadline to the end of the last acquire. */
  readonly settledAfterMs: number;
  /** The longest time between two turns of the event loop, from shortly before the deadline on. */
  readonly stallMs: number;
  readonly timedOut: number;
  /** Other results, by the first word of their messages. */
  readonly others: Readonly<Record<string, number>>;
  readonly isOtherLost: boolean;
}

/** A command in transit. */
export interface Asked {
  readonly number: number;
  readonly call: Call;
}

/** A message from a process: the reply to a command, or an event. */
export type Said =
  | { readonly type: "answer"; readonly number: number; readonly value?: unknown; readonly error?: string }
  | ({ readonly type: "event" } & ActorEvent);

/** An event in a process. */
export interface ActorEvent {
  readonly what: "granted" | "released" | "refused" | "lost" | "warning";
  readonly atMs: number;
  readonly lockName: string;
  readonly message: string;
}

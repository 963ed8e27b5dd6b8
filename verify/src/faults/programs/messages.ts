/** The messages between a run and its client processes. */
import type { Kind } from "../../history/records.js";
import type { Letter } from "../cell.js";
import type { Client, Reach, Taken, Work } from "../stage.js";
import type { Grace, Releases } from "../subject.js";

/** The settings of a client process, as JSON in its first argument. */
export interface ClientSettings {
  /** The name and incarnation in one string, as in the records. */
  readonly process: string;
  readonly incarnation: number;
  /** The ids of its operations are above this number. */
  readonly idBase: number;
  /** The file for its records. */
  readonly file: string;
  readonly subject: string;
  readonly letter: Letter;
  readonly port: number;
  readonly reach: Reach;
  readonly grace: Grace;
  readonly releases: Releases;
  /** The port of the protected resource. */
  readonly resourcePort: number;
  readonly commandTimeoutMs: number;
  readonly mutations: readonly string[];
  readonly wallOffsetMs: number;
  /** The number of processes that share the caps on one name. */
  readonly clients: number;
  readonly seed: number;
}

/** The number of parties of each barrier. */
export const PARTIES = 2;

/** The operations on a latch. */
export type LatchVerb = Parameters<Client["latch"]>[1];

/** A command to a client process. */
export type Call =
  | { readonly verb: "work"; readonly work: Work }
  | { readonly verb: "take"; readonly options: Parameters<Client["take"]>[0] }
  | { readonly verb: "extend"; readonly leaseId: number; readonly leaseMs: number }
  | { readonly verb: "release" | "sample"; readonly leaseId: number }
  | { readonly verb: "write"; readonly leaseId: number; readonly isFenced: boolean }
  | { readonly verb: "latch"; readonly lockName: string; readonly act: LatchVerb; readonly number: number }
  | { readonly verb: "barrier"; readonly lockName: string; readonly act: "arrive" | "reset"; readonly waitMs: number }
  | { readonly verb: "condition"; readonly lockName: string; readonly act: "wait" | "signal"; readonly waitMs: number }
  | { readonly verb: "block"; readonly forMs: number }
  | { readonly verb: "stepWall"; readonly offsetMs: number }
  | { readonly verb: "vanish"; readonly how: "exit" | "error" }
  | { readonly verb: "rest" | "close" };

/** A command in transit. */
export interface Asked {
  readonly number: number;
  readonly call: Call;
}

/** The reply to a command. */
export interface Answered {
  readonly number: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** The result of `take`: the lease, or why there is none. */
export interface TakeAnswer {
  readonly taken?: Taken;
  readonly refusal?: string;
}

/** The name of the second member of a directed multi-lock. */
export function besideOf(lockName: string): string {
  return `${lockName}+`;
}

/** The number of permits of each semaphore. */
export const LIMIT = 3;

/** The kind of lock for each letter. */
export const KINDS: Readonly<Record<Letter, Kind>> = {
  m: "mutex",
  r: "reentrant-mutex",
  w: "read-write-lock",
  s: "semaphore",
  f: "mutex",
  k: "multi-lock",
  t: "mutex",
  a: "mutex",
  l: "count-down-latch",
  e: "election",
  b: "barrier",
  // The kind that sessions hold; signals are recorded separately.
  c: "mutex",
};

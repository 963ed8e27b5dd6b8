/** What a run and its client processes say to each other. */
import type { Kind } from "../../history/records.js";
import type { Letter } from "../cell.js";
import type { Client, Reach, Taken, Work } from "../stage.js";
import type { Grace, Releases } from "../subject.js";

/** What a client process is started with, as JSON in its first argument. */
export interface ClientSettings {
  /** Name and incarnation in one, as the records have it. */
  readonly process: string;
  readonly incarnation: number;
  /** Ids of its operations begin above this. */
  readonly idBase: number;
  /** Where it writes its records. */
  readonly file: string;
  readonly subject: string;
  readonly letter: Letter;
  readonly port: number;
  readonly reach: Reach;
  readonly grace: Grace;
  readonly releases: Releases;
  /** Port of the guarded resource. */
  readonly resourcePort: number;
  readonly commandTimeoutMs: number;
  readonly mutations: readonly string[];
  readonly wallOffsetMs: number;
  /** How many processes share the caps on one name. */
  readonly clients: number;
  readonly seed: number;
}

/** The barriers of the runs have so many parties. */
export const PARTIES = 2;

/** What can be done to a latch. */
export type LatchVerb = Parameters<Client["latch"]>[1];

/** What can be asked of it. */
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

/** A call on its way. */
export interface Asked {
  readonly number: number;
  readonly call: Call;
}

/** Its answer. */
export interface Answered {
  readonly number: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** What `take` came to: the lease, or why there is none. */
export interface TakeAnswer {
  readonly taken?: Taken;
  readonly refusal?: string;
}

/** The name of the lock that a directed multi-lock takes beside that one. */
export function besideOf(lockName: string): string {
  return `${lockName}+`;
}

/** The semaphores of the runs have so many permits. */
export const LIMIT = 3;

/** What each letter locks. */
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
  // What sessions hold; signals are for themselves.
  c: "mutex",
};

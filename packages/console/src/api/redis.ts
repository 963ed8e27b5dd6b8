/** The Redis servers and the doctor's findings: `api/redis`, `api/doctor`. */
import type { Stamped } from "./document.js";

/** Whether Redis replies. Part of every stream, whatever its topics. */
export type StoreView =
  | { readonly state: "up"; readonly address: string; readonly sinceAtMs: number }
  | { readonly state: "connecting"; readonly address: string }
  | {
      readonly state: "down";
      /** Without user and password. */
      readonly address: string;
      /** The error in plain words, without secrets. */
      readonly error: string;
      readonly sinceAtMs: number;
      /** The number of attempts since `sinceAtMs`. */
      readonly attempt: number;
      readonly nextTryAtMs: number;
      /** The doctor's hint for this error. */
      readonly hint: string;
    };

/** One Redis server. */
export interface NodeView {
  readonly address: string;
  readonly role: "primary" | "replica" | "unknown";
  readonly version: string | null;
  readonly uptimeMs: number | null;
  readonly usedMemoryBytes: number | null;
  readonly maxMemoryBytes: number | null;
  readonly policy: string | null;
  readonly connectedClients: number | null;
  readonly replicas: readonly { readonly address: string; readonly state: string; readonly lagMs: number | null }[];
  /** The server's clock minus the console's clock. */
  readonly clockSkewMs: number | null;
}

/** The quiet time after a failover or a restart: the server grants no new locks until it ends. */
export interface GraceView {
  readonly sinceAtMs: number | null;
  readonly untilAtMs: number;
  readonly cause: string;
}

/** Round trips of the poller: at most 300, one per poll, oldest first. */
export interface LatencySample {
  readonly atMs: number;
  readonly ms: number;
}

/** Response of GET api/redis. */
export interface RedisAnswer extends Stamped {
  readonly store: StoreView;
  readonly topology: "single" | "sentinel" | "cluster" | "redlock" | "unknown";
  readonly prefix: string;
  readonly nodes: readonly NodeView[];
  readonly grace: GraceView | null;
  readonly latency: readonly LatencySample[];
  /** False if the console was mounted without clients that can query the servers themselves. */
  readonly hasServerFacts: boolean;
  readonly hasDoctor: boolean;
}

/** One finding of the doctor. */
export interface FindingView {
  readonly id: string;
  readonly node: string;
  readonly severity: "critical" | "warning" | "info";
  readonly status: "ok" | "finding" | "unknown" | "skipped";
  readonly measured: string;
  /** Null if there is no finding, or nothing to do about it. */
  readonly risk: string | null;
  readonly fix: string | null;
}

/** Response of GET and POST api/doctor. */
export interface DoctorAnswer extends Stamped {
  /** Null: the doctor has not run since the console started. */
  readonly ranAtMs: number | null;
  readonly isRunning: boolean;
  readonly checks: readonly FindingView[];
}

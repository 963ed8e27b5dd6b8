/** The servers, and what the doctor finds on them: `api/redis`, `api/doctor`. */
import type { Stamped } from "./document.js";

/** Whether Redis answers. It is part of every stream, whatever the topics. */
export type StoreView =
  | { readonly state: "up"; readonly address: string; readonly sinceAtMs: number }
  | { readonly state: "connecting"; readonly address: string }
  | {
      readonly state: "down";
      /** Without user and password. */
      readonly address: string;
      /** In plain words, without secrets. */
      readonly error: string;
      readonly sinceAtMs: number;
      /** How many tries since then. */
      readonly attempt: number;
      readonly nextTryAtMs: number;
      /** What the doctor says to that. */
      readonly hint: string;
    };

/** One server. */
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
  /** Its clock less the console's. */
  readonly clockSkewMs: number | null;
}

/** A failover grace: nothing new is granted until it ends. */
export interface GraceView {
  readonly sinceAtMs: number | null;
  readonly untilAtMs: number;
  readonly cause: string;
}

/** Round trips of the poller: at most 300, one each poll, oldest first. */
export interface LatencySample {
  readonly atMs: number;
  readonly ms: number;
}

/** GET api/redis */
export interface RedisAnswer extends Stamped {
  readonly store: StoreView;
  readonly topology: "single" | "sentinel" | "cluster" | "redlock" | "unknown";
  readonly prefix: string;
  readonly nodes: readonly NodeView[];
  readonly grace: GraceView | null;
  readonly latency: readonly LatencySample[];
  /** False: this console was mounted without a way to ask the server about itself. */
  readonly hasServerFacts: boolean;
  readonly hasDoctor: boolean;
}

/** One finding. */
export interface FindingView {
  readonly id: string;
  readonly node: string;
  readonly severity: "critical" | "warning" | "info";
  readonly status: "ok" | "finding" | "unknown" | "skipped";
  readonly measured: string;
  /** Null where nothing was found, or there is nothing to do. */
  readonly risk: string | null;
  readonly fix: string | null;
}

/** GET and POST api/doctor */
export interface DoctorAnswer extends Stamped {
  /** Null: not run since the console started. */
  readonly ranAtMs: number | null;
  readonly isRunning: boolean;
  readonly checks: readonly FindingView[];
}

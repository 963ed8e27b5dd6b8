/** What a console works with: a Holdfast, and optionally clients of the servers behind it. */
import type { Holdfast } from "holdfast";
import type { FindingView, RedisAnswer } from "./api.js";

/** A connection to one server, such as a client of ioredis or iovalkey. */
export interface ServerClient {
  call(command: string, ...args: string[]): Promise<unknown>;
  readonly options?: { readonly host?: string | undefined; readonly port?: number | undefined };
  /** The console listens to the events `error` and `ready`. */
  on?(event: string | symbol, listener: (error?: unknown) => void): unknown;
  off?(event: string | symbol, listener: (error?: unknown) => void): unknown;
}

/** The connections of a console. */
export interface Backend {
  readonly holdfast: Holdfast;
  readonly prefix: string;
  readonly topology: RedisAnswer["topology"];
  /** A client for each primary; empty if the console was given none. */
  servers(): readonly ServerClient[];
  /** Runs the doctor; absent if there is none. */
  readonly examine?: () => Promise<readonly FindingView[]>;
  close(): Promise<void>;
}

/**
 * Connects to the backend. Called again after a rejection; after it resolves, the client library reconnects by
 * itself.
 */
export interface Link {
  /** The address to show, without secrets. */
  readonly address: string;
  connect(signal: AbortSignal): Promise<Backend>;
}

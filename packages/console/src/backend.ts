/** What the console stands on: a Holdfast, and as far as they were given, the servers behind it. */
import type { Holdfast } from "holdfast";
import type { FindingView, RedisAnswer } from "./api.js";

/** A connection to one server. Clients of ioredis and iovalkey are such. */
export interface ServerClient {
  call(command: string, ...args: string[]): Promise<unknown>;
  readonly options?: { readonly host?: string | undefined; readonly port?: number | undefined };
  /** Of the events, `error` and `ready` are used. */
  on?(event: string | symbol, listener: (error?: unknown) => void): unknown;
  off?(event: string | symbol, listener: (error?: unknown) => void): unknown;
}

/** See the file header. */
export interface Backend {
  readonly holdfast: Holdfast;
  readonly prefix: string;
  readonly topology: RedisAnswer["topology"];
  /** Every primary; none if the console was not told. */
  servers(): readonly ServerClient[];
  /** Runs the doctor; absent where there is none. */
  readonly examine?: () => Promise<readonly FindingView[]>;
  close(): Promise<void>;
}

/** How to get one. Called again after it has rejected; once it has resolved, the client library sees to reconnecting. */
export interface Link {
  /** Where it leads, without secrets. */
  readonly address: string;
  connect(signal: AbortSignal): Promise<Backend>;
}

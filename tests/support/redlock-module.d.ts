/** Declares the part of redlock that tests use. Its own declarations are missing from its `exports`. */
declare module "redlock" {
  import type { EventEmitter } from "node:events";
  import type { Redis } from "ioredis";

  export interface Settings {
    readonly driftFactor: number;
    readonly retryCount: number;
    readonly retryDelay: number;
    readonly retryJitter: number;
    readonly automaticExtensionThreshold: number;
  }

  export interface ExecutionStats {
    readonly votesAgainst: ReadonlyMap<Redis, Error>;
  }

  export class ResourceLockedError extends Error {}

  export class ExecutionError extends Error {
    readonly attempts: readonly Promise<ExecutionStats>[];
  }

  export class Lock {
    readonly resources: readonly string[];
    readonly value: string;
    readonly attempts: readonly Promise<ExecutionStats>[];
    /** Wall-clock time, or 0 after the lock is released or replaced. */
    readonly expiration: number;
    extend(durationMs: number): Promise<Lock>;
    release(): Promise<unknown>;
  }

  class Redlock extends EventEmitter {
    constructor(clients: Iterable<Redis>, settings?: Partial<Settings>);
    acquire(resources: string[], durationMs: number, settings?: Partial<Settings>): Promise<Lock>;
    extend(existing: Lock, durationMs: number, settings?: Partial<Settings>): Promise<Lock>;
    using<T>(
      resources: string[],
      durationMs: number,
      settings: Partial<Settings>,
      routine: (signal: AbortSignal) => Promise<T>,
    ): Promise<T>;
  }

  export { Redlock as default };
}

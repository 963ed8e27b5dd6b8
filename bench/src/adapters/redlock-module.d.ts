/** The part of redlock that is driven here: its own declarations are not in its `exports`, so that nothing finds them. */
declare module "redlock" {
  import type { Redis } from "ioredis";

  export interface Settings {
    readonly retryCount: number;
    readonly retryDelay: number;
    readonly retryJitter: number;
  }

  export interface Lock {
    release(): Promise<unknown>;
  }

  class Redlock {
    constructor(clients: Iterable<Redis>, settings?: Partial<Settings>);
    acquire(resources: string[], durationMs: number): Promise<Lock>;
  }

  export { Redlock as default };
}

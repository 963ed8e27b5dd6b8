/** Events that do not come from locks. Each type has only the fields that the metrics use. */

/** A request that an HTTP integration has answered. */
export interface RequestEvent {
  readonly method: string;
  readonly route: string;
  readonly outcome: string;
}

/** The start or end of a run of a scheduler recipe, or a run that was skipped. */
export interface RunEvent {
  readonly kind: string;
  readonly lockName: string;
  readonly outcome?: string | undefined;
  readonly reason?: string | undefined;
}

/** The start or end of a `get` of a cache. */
export interface CacheEvent {
  readonly kind: string;
  readonly cacheName: string;
  /** Undefined until the call ends. */
  readonly outcome: string | undefined;
}

/** What is told of other things than locks, as far as it is counted. */

/** What the integrations for HTTP tell of a request. */
export interface RequestEvent {
  readonly method: string;
  readonly route: string;
  readonly outcome: string;
}

/** What recipes for schedulers tell of a run. */
export interface RunEvent {
  readonly kind: string;
  readonly lockName: string;
  readonly outcome?: string | undefined;
  readonly reason?: string | undefined;
}

/** What a cache tells of a call, at its start and at its end. */
export interface CacheEvent {
  readonly kind: string;
  readonly cacheName: string;
  /** Undefined until it ends. */
  readonly outcome: string | undefined;
}

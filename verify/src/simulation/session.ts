/** What one caller does with one lock. Each kind uses the fields that it needs. */
export interface Session {
  readonly id: number;
  readonly process: number;
  readonly lock: number;
  readonly atMs: number;
  /** A single attempt, without a wait. */
  readonly isTry: boolean;
  /** The wait limit; Infinity waits forever. */
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly renew: boolean;
  /** When its signal aborts the wait, from the call on; null if it does not. */
  readonly abortAfterMs: number | null;
  readonly holdMs: number;
  /** The length of an extension during the hold; null for none. */
  readonly extendMs: number | null;
  /**
   * How the hold ends: by a release, never, by export to another process, or by a forced release from another
   * process.
   */
  readonly end: "release" | "drop" | "export" | "force";
  /** Permits, reader or writer, one half of a pair: the meaning depends on the kind. */
  readonly amount: number;
  /** Another process, for operations that need two. */
  readonly other: number;
  /** An additional operation; see newcomers.ts, in-background.ts and steals.ts. */
  readonly way?: "by-token" | "resize" | "with-permits" | "in-background" | "steal";
  /** The crowd that it belongs to, see crowds.ts. Absent for a caller that does not share its claim. */
  readonly crowd?: number;
}

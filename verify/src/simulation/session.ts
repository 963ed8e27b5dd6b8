/** What one caller does with one lock. Kinds read of it what they need. */
export interface Session {
  readonly id: number;
  readonly process: number;
  readonly lock: number;
  readonly atMs: number;
  /** One attempt, without a wait. */
  readonly isTry: boolean;
  /** Infinity to wait forever. */
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly renew: boolean;
  /** When its signal aborts the wait, counted from the call; null if it does not. */
  readonly abortAfterMs: number | null;
  readonly holdMs: number;
  /** Length of an extension in the middle of the hold; null for none. */
  readonly extendMs: number | null;
  /** How it ends: as it should, never, by export to another process, or by the force of another. */
  readonly end: "release" | "drop" | "export" | "force";
  /** Permits, readers against writers, which half of a pair: what it means is up to the kind. */
  readonly amount: number;
  /** Another process, for what takes two. */
  readonly other: number;
  /** What it does besides: see newcomers.ts, in-background.ts and steals.ts. */
  readonly way?: "by-token" | "resize" | "with-permits" | "in-background" | "steal";
  /** Which crowd it is of: see crowds.ts. Absent for a caller that does not share its claim. */
  readonly crowd?: number;
}

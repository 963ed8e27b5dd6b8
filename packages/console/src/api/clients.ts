/** Processes, and what they hold: `api/clients`. */
import type { KindName, Stamped } from "./document.js";

/** One process. */
export interface ClientView {
  readonly clientId: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly version: string | null;
  /** Version of the protocol that it speaks; null if its record is gone. */
  readonly protocol: number | null;
  /** Since when it is there; null if its record is gone. */
  readonly sinceAtMs: number | null;
  readonly seenAtMs: number | null;
  /** True if it has been silent for a minute although it holds or waits: what it holds ends with its leases. Null: cannot be told. */
  readonly isDead: boolean | null;
  /** What it holds, at most 100; `heldCount` says how many. */
  readonly holds: readonly HoldView[];
  readonly heldCount: number;
  readonly waitCount: number;
}

/** A hold, as seen from its client. */
export interface HoldView {
  readonly kind: KindName;
  readonly name: string;
  readonly key: string | null;
  readonly owner: string;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  readonly expiresAtMs: number | null;
}

/** GET api/clients */
export interface ClientsAnswer extends Stamped {
  readonly clients: readonly ClientView[];
}

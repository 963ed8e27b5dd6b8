/** Client processes and the locks they hold: `api/clients`. */
import type { KindName, Stamped } from "./document.js";
import type { Extent } from "./locks.js";

/** One client process. */
export interface ClientView {
  readonly clientId: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly version: string | null;
  /** The protocol version that it uses; null if its record is gone. */
  readonly protocol: number | null;
  /** When the client started; null if its record is gone. */
  readonly sinceAtMs: number | null;
  readonly seenAtMs: number | null;
  /**
   * True if the client holds or waits for a lock but has been silent for a minute; its locks end with their leases.
   * Null if unknown.
   */
  readonly isDead: boolean | null;
  /** The first 100 locks that it holds; `heldCount` is the total. */
  readonly holds: readonly HoldView[];
  readonly heldCount: number;
  readonly waitCount: number;
}

/** One hold in the list of its client. */
export interface HoldView {
  readonly kind: KindName;
  readonly name: string;
  readonly key: string | null;
  readonly owner: string;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  readonly expiresAtMs: number | null;
}

/** The clients, and the locks whose holders and waiters were counted for them. */
export interface ClientsState extends Extent {
  readonly clients: readonly ClientView[];
  /** The number of locks read; null for visitors who may not see all locks. */
  readonly lockCount: number | null;
  /** Present while more locks are being read: another `state` follows, and no number is final. */
  readonly isPartial?: true;
}

/** Response of GET api/clients. */
export interface ClientsAnswer extends Stamped, ClientsState {}

/** Client processes and the locks they hold: `api/clients`. */
import type { KindName, Stamped } from "./document.js";

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
   * True if the client holds or waits but has been silent for a minute: its locks end with their leases. Null:
   * unknown.
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

/** Response of GET api/clients. */
export interface ClientsAnswer extends Stamped {
  readonly clients: readonly ClientView[];
}

/**
 * Keeps the record of this client alive while it holds or waits, so that others can see which process it is.
 *
 * It is for people only: failing to write it harms nothing, and it is tried again in time.
 */
import type { Runtime } from "./runtime.js";
import { SharedTimer } from "./shared-timer.js";

/** Where client records are kept. */
export interface ClientRecords {
  /** Writes this client's record, and marks its protocol as in use; both count for `keepMs` from now. @throws StoreError */
  announce(keepMs: number): Promise<void>;
  /** The record of any client; undefined if there is none. @throws StoreError */
  read(clientId: string, timeoutMs: number): Promise<ClientRecord | undefined>;
}

/** Which process a client is. */
export interface ClientRecord {
  readonly host: string;
  readonly pid: number;
  /** The `clientName` option; undefined if it gave none. */
  readonly clientName: string | undefined;
  /** Version of the protocol that it speaks; 0 for clients from before there were versions. */
  readonly protocol: number;
}

/** A record lives this much longer than the longest lease, so that it is still there when a dead holder is asked about. */
export const KEEP_MS = 60_000;
const REFRESH_MS = 20_000;

/** Writes the record when the client is first used, and again while it is in use. */
export class Presence {
  readonly #records: ClientRecords;
  readonly #isInUse: () => boolean;
  #longestLeaseMs = 0;
  readonly #timer: SharedTimer;
  #closed = false;

  constructor(records: ClientRecords, runtime: Runtime, isInUse: () => boolean) {
    this.#records = records;
    this.#isInUse = isInUse;
    this.#timer = new SharedTimer(runtime, () => this.#refresh());
  }

  /** Called for every claim; does nothing but compare while the record is fresh. */
  touch(leaseMs: number): void {
    const isLonger = leaseMs > this.#longestLeaseMs;
    if (isLonger) this.#longestLeaseMs = leaseMs;
    if (isLonger || !this.#timer.isRunning) this.announce();
  }

  /** Writes the record now, e.g. because the server may have lost it. */
  announce(): void {
    if (this.#closed || this.#longestLeaseMs === 0) return;
    this.#timer.start(REFRESH_MS);
    this.#records.announce(this.#longestLeaseMs + KEEP_MS).catch(() => {
      // The next refresh tries again; until then this client is known by its id alone.
    });
  }

  /** Stops refreshing. The record goes by itself. */
  close(): void {
    this.#closed = true;
    this.#timer.cancel();
  }

  #refresh(): void {
    if (this.#isInUse()) this.announce();
  }
}

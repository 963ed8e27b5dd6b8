/** The protocol of a versioned value. Each step is one script call. */

import { call, insist, lockKeys, type NamedStore, type Session } from "holdfast/internal";
import { recipesVersionedRead, recipesVersionedWrite } from "../generated/versioned.js";

/** A value as stored on the server; `text` is undefined if it was deleted or never set. */
export interface StoredText {
  /** Version of the value; 0 if it was never set. */
  readonly version: number;
  /** The encoded value. */
  readonly text: string | undefined;
}

/** The result of a write: the new version, or, after a conflict, the stored value. */
export type Written =
  | { readonly isWritten: true; readonly version: number }
  | ({ readonly isWritten: false } & StoredText);

/** How long the version of a deleted value is kept. */
const BURY_MS = 7 * 86_400_000;
/** How long the server remembers a request, in command timeouts: longer than the client retries it. */
const REMEMBER_TIMEOUTS = 5;
const REMEMBER_MIN_MS = 20_000;

/** Matches any version in `write`. */
export const ANY_VERSION = -1;

/** The protocol of one versioned value. */
export class VersionedProtocol {
  readonly name: string;
  /** Channel on which each write publishes the new version. */
  readonly channel: string;
  readonly #session: Session;
  readonly #caller: NamedStore;
  readonly #record: string;
  readonly #requests: string;

  constructor(session: Session, prefix: string, name: string) {
    this.name = name;
    this.#session = session;
    this.#caller = { store: session.store, name };
    const { lock, base } = lockKeys(prefix, "versioned", name);
    this.#record = lock;
    this.#requests = `${base}:requests`;
    this.channel = `${base}:changed`;
  }

  /** Reads the value and its version. @throws StoreError */
  async read(timeoutMs: number): Promise<StoredText> {
    const { version, value } = await call(this.#caller, recipesVersionedRead, { record: this.#record }, {}, timeoutMs);
    return { version, text: value[0] };
  }

  /**
   * Writes the value if its version is `expected`. Without a reply, retries for about two command timeouts. The request
   * takes effect once and gets the same reply each time, even if others have written since.
   *
   * @param expected  the version seen by the caller; 0 for no value, ANY_VERSION for any
   * @param text      the new value; undefined deletes
   * @throws StoreError   the value may or may not be written
   * @throws ClosedError  this Holdfast was closed
   */
  async write(expected: number, text: string | undefined): Promise<Written> {
    const session = this.#session;
    const keys = { record: this.#record, requests: this.#requests };
    const args = {
      version: expected,
      request: session.newRequestId(this.name),
      rememberMs: Math.max(REMEMBER_MIN_MS, REMEMBER_TIMEOUTS * session.commandTimeoutMs),
      buryMs: text === undefined ? BURY_MS : 0,
      value: text ?? "",
      channel: this.channel,
    };
    const reply = await insist(session, () =>
      call(this.#caller, recipesVersionedWrite, keys, args, session.commandTimeoutMs),
    );
    if (reply.outcome === "written") return { isWritten: true, version: reply.version };
    return { isWritten: false, version: reply.version, text: reply.value[0] };
  }
}

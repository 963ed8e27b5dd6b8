/** The protocol of a versioned value: each one script call. */

import { recipesVersionedRead, recipesVersionedWrite } from "../../generated/recipes-scripts.js";
import { call, insist, lockKeys, type NamedStore, type Session } from "../../internal.js";

/** A value as the server has it; without text it was deleted, or never there. */
export interface Kept {
  readonly version: number;
  readonly text: string | undefined;
}

/** How a write ended: written as that version, or in conflict with what is there. */
export type Written = { readonly isWritten: true; readonly version: number } | ({ readonly isWritten: false } & Kept);

/** How long a deleted value leaves its version behind. */
const BURY_MS = 7 * 86_400_000;
/** A request is repeated for as long as a few command time-outs. */
const REMEMBER_TIMEOUTS = 5;
const REMEMBER_MIN_MS = 20_000;

/** Stands for whatever version there is. */
export const ANY_VERSION = -1;

/** See the file header. */
export class VersionedProtocol {
  readonly name: string;
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

  /** @throws StoreError */
  async read(timeoutMs: number): Promise<Kept> {
    const { version, value } = await call(this.#caller, recipesVersionedRead, { record: this.#record }, {}, timeoutMs);
    return { version, text: value[0] };
  }

  /**
   * Writes where the version is `expected`, and insists on an answer: it counts once, and tells whether it won, however often
   * it is sent and whoever wrote since.
   *
   * @param text  undefined deletes
   * @throws StoreError  it may be written, or not. @throws ClosedError
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

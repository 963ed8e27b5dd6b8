/**
 * Hears on each server when somebody's hold of one lock has ended there. A hint, never a guarantee: whoever waits asks in
 * time as well.
 */

import { UnsupportedError } from "../core/errors.js";
import type { Session } from "../core/session.js";
import type { Inbox } from "../core/store.js";
import type { QuorumServer } from "./servers.js";

/** See the file header. One for each lock that somebody here waits for. */
export class Subscribers {
  readonly #session: Session;
  readonly #servers: readonly QuorumServer[];
  readonly #channel: string;
  readonly #onRelease: (server: number) => void;
  readonly #inboxes = new Map<number, Inbox>();
  readonly #deaf = new Set<number>();
  readonly #opening = new Set<number>();
  #isClosed = false;

  constructor(
    session: Session,
    servers: readonly QuorumServer[],
    channel: string,
    onRelease: (server: number) => void,
  ) {
    this.#session = session;
    this.#servers = servers;
    this.#channel = channel;
    this.#onRelease = onRelease;
  }

  /** On how many servers it listens. */
  get open(): number {
    return this.#inboxes.size;
  }

  /** Whether it listens there. */
  isOpenAt(server: number): boolean {
    return this.#inboxes.has(server);
  }

  /** Listens wherever it does not yet. @returns when each server has confirmed or failed; never rejects */
  async listen(): Promise<void> {
    const missing = this.#servers.filter(
      ({ index }) => !this.#inboxes.has(index) && !this.#deaf.has(index) && !this.#opening.has(index),
    );
    await Promise.all(missing.map((server) => this.#listenTo(server)));
  }

  /** Listens no longer. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const inboxes = [...this.#inboxes.values()];
    this.#inboxes.clear();
    await Promise.all(inboxes.map((inbox) => inbox.close()));
  }

  async #listenTo({ index, store }: QuorumServer): Promise<void> {
    this.#opening.add(index);
    try {
      const inbox = await store.inbox(this.#channel, () => this.#onRelease(index), this.#session.commandTimeoutMs);
      if (this.#isClosed) await inbox.close();
      else this.#inboxes.set(index, inbox);
    } catch (error) {
      if (error instanceof UnsupportedError) this.#deaf.add(index);
    } finally {
      this.#opening.delete(index);
    }
  }
}

/** Subscribes on each server to the releases of one lock. A message is only a hint: waiters also poll. */

import { UnsupportedError } from "../core/errors.js";
import type { Session } from "../core/session.js";
import type { Inbox } from "../core/store.js";
import type { QuorumServer } from "./servers.js";

/** The subscriptions to the releases of one lock. One object per lock with local waiters. */
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

  /** The number of servers with an open subscription. */
  get open(): number {
    return this.#inboxes.size;
  }

  /** Whether the subscription on this server is open. */
  isOpenAt(server: number): boolean {
    return this.#inboxes.has(server);
  }

  /** Subscribes on the servers without a subscription. Resolves when each has confirmed or failed; never rejects. */
  async listen(): Promise<void> {
    const missing = this.#servers.filter(
      ({ index }) => !this.#inboxes.has(index) && !this.#deaf.has(index) && !this.#opening.has(index),
    );
    await Promise.all(missing.map((server) => this.#listenTo(server)));
  }

  /** Closes all subscriptions. Never rejects. */
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

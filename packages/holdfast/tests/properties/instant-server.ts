/** A server with an instant network and a clock that the test controls. Its clients can connect and disconnect. */
import { type DumpedKey, type EmbeddedStore, embedded, Keyspace } from "@holdfast/embedded";
import type { Inbox } from "../../src/index.js";

export class InstantServer {
  nowMs = 1_763_711_220_000;
  readonly keyspace: Keyspace = new Keyspace({
    clock: { nowUs: () => this.nowMs * 1_000 },
    scheduler: { schedule: (task) => queueMicrotask(task) },
  });
  readonly store: EmbeddedStore = embedded({ keyspace: this.keyspace });
  /** Every message that reached a connected client, as `<client> <message>`. */
  readonly heard: string[] = [];
  readonly #inboxes = new Map<string, Inbox>();

  /** Prefix of the clients' inbox channels. The client id follows it. */
  readonly inbox = "in:";

  async arrive(client: string): Promise<void> {
    if (this.#inboxes.has(client)) return;
    const hear = (message: string): void => void this.heard.push(`${client} ${message}`);
    this.#inboxes.set(client, await this.store.inbox(this.inbox + client, hear, 1_000));
  }

  async goAway(client: string): Promise<void> {
    await this.#inboxes.get(client)?.close();
    this.#inboxes.delete(client);
    await Promise.resolve();
  }

  /** Whether the client of that owner is connected. */
  hears(owner: string): boolean {
    return this.#inboxes.has(owner.slice(0, owner.indexOf("/")));
  }

  /** The value of a key. Undefined if the key does not exist. */
  valueOf(key: string): DumpedKey["value"] | undefined {
    return this.keyspace.dump().find((entry) => entry.key === key)?.value;
  }

  /** The members of a sorted set in order. */
  membersOf(key: string): string[] {
    const value = this.valueOf(key);
    return Array.isArray(value) ? value.filter((_, i) => i % 2 === 0) : [];
  }

  /** Keys that never expire. */
  immortals(): string[] {
    return this.keyspace
      .dump()
      .filter(({ leftMs }) => leftMs < 0)
      .map(({ key }) => key);
  }
}

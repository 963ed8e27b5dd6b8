/**
 * In a cluster: an inbox in each slot in which this client waits.
 *
 * The server of a slot can only count the listeners that it has itself, and a waiter that is not counted is taken for dead.
 * An inbox is opened when it is first needed, and closed a while after the last waiter has asked: whoever waits asks
 * every few seconds, and each time it is noted.
 */
import type { Runtime } from "./runtime.js";
import { SharedTimer } from "./shared-timer.js";
import type { Inbox } from "./store.js";

/** Longer than waiters go without asking; short of keeping an inbox for each name of a long life. */
const KEEP_MS = 30_000;

/** Opens a channel. */
export type OpenInbox = (channel: string, timeoutMs: number) => Promise<Inbox>;

interface SlotInbox {
  readonly inbox: Inbox;
  usedAtMs: number;
}

/** See the file header. An inbox is named by what a client id is appended to for its channel. */
export class SlotInboxes {
  readonly #openInbox: OpenInbox;
  readonly #clientId: string;
  readonly #runtime: Runtime;
  readonly #open = new Map<string, SlotInbox>();
  readonly #opening = new Map<string, Promise<void>>();
  readonly #sweeping: SharedTimer;
  #isClosed = false;

  constructor(openInbox: OpenInbox, clientId: string, runtime: Runtime) {
    this.#openInbox = openInbox;
    this.#clientId = clientId;
    this.#runtime = runtime;
    this.#sweeping = new SharedTimer(runtime, () => this.#sweep());
  }

  /** The inbox, if it is confirmed; then it stays for a while from now on. */
  use(name: string): Inbox | undefined {
    const found = this.#open.get(name);
    if (found === undefined) return undefined;
    found.usedAtMs = this.#runtime.monotonicMs();
    return found.inbox;
  }

  /** The inbox, if it is confirmed; it stays no longer for that. */
  find(name: string): Inbox | undefined {
    return this.#open.get(name)?.inbox;
  }

  /** Resolves when it is confirmed. @throws StoreError, UnsupportedError */
  open(name: string, timeoutMs: number): Promise<void> {
    if (this.use(name) !== undefined) return Promise.resolve();
    const under = this.#opening.get(name);
    if (under !== undefined) return under;
    const opening = this.#openOnce(name, timeoutMs).finally(() => this.#opening.delete(name));
    this.#opening.set(name, opening);
    return opening;
  }

  /** Closes all. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#sweeping.cancel();
    const inboxes = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(inboxes.map(({ inbox }) => inbox.close()));
  }

  async #openOnce(name: string, timeoutMs: number): Promise<void> {
    const inbox = await this.#openInbox(name + this.#clientId, timeoutMs);
    if (this.#isClosed) return inbox.close();
    this.#open.set(name, { inbox, usedAtMs: this.#runtime.monotonicMs() });
    this.#sweeping.ensure(KEEP_MS);
  }

  #sweep(): void {
    const dueAtMs = this.#runtime.monotonicMs() - KEEP_MS;
    for (const [name, { inbox, usedAtMs }] of this.#open) {
      if (usedAtMs > dueAtMs) continue;
      this.#open.delete(name);
      void inbox.close();
    }
    if (this.#open.size > 0) this.#sweeping.start(KEEP_MS / 2);
  }
}

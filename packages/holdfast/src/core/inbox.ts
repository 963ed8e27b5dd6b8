/**
 * The inbox of a client: its channel, or one for each slot of a cluster, and whom a message is for.
 */
import { type Forced, StoreError, UnsupportedError } from "./errors.js";
import { decodeWords } from "./protocol.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import type { Inbox, Store } from "./store.js";

/**
 * Values by a number that only rises, for what lives briefly and in great numbers.
 *
 * A Map that is filled and emptied once per acquire grows a chain of old tables that the garbage collector keeps
 * for long (measured: 5 to 7 µs of 46 per acquire and release). Most entries are gone before their number comes
 * round again, so a ring takes them; the few that are not are in a Map.
 */

const SIZE = 4_096;

/** See the file header. */
export class Registry<Value> {
  readonly #numbers = new Float64Array(SIZE);
  readonly #values = Array<Value | undefined>(SIZE);
  readonly #rest = new Map<number, Value>();
  #size = 0;

  /** How many entries there are. */
  get size(): number {
    return this.#size;
  }

  /** The value of `number`, a whole number from 1. */
  get(number: number): Value | undefined {
    const at = number % SIZE;
    return this.#numbers[at] === number ? this.#values[at] : this.#rest.get(number);
  }

  /** Adds an entry, or gives it another value. */
  set(number: number, value: Value): void {
    if (this.get(number) === undefined) this.#size += 1;
    const at = number % SIZE;
    if (this.#rest.has(number)) {
      this.#rest.set(number, value);
    } else if (this.#numbers[at] === number || this.#values[at] === undefined) {
      this.#numbers[at] = number;
      this.#values[at] = value;
    } else {
      this.#rest.set(number, value);
    }
  }

  /** Removes an entry, if there is one. */
  delete(number: number): void {
    if (this.get(number) === undefined) return;
    this.#size -= 1;
    const at = number % SIZE;
    if (this.#numbers[at] === number) {
      this.#numbers[at] = 0;
      this.#values[at] = undefined;
    } else {
      this.#rest.delete(number);
    }
  }

  /** A copy of all values, so that whoever is called may change the registry. */
  values(): Value[] {
    const ring = this.#values.filter((value): value is Value & {} => value !== undefined);
    return [...ring, ...this.#rest.values()];
  }
}

// --- The client's inbox: one channel on which the server pushes grants and notices to this process.
//
// Losing a message costs time, never a lock: it is about a fact that the server holds, and whoever waits for it asks
// in time. A grant is believed without asking, because asking would cost a round trip for each hand-over: whoever may
// publish to this channel, whose name is not to be guessed, is trusted as much as whoever may write the keys.

/** Who messages are for: a claim that waits, holds or departs. */
export interface Recipient {
  /** The server granted the claim at `grantedAtUs` of its clock. */
  granted(token: number, grantedAtUs: number, slots: readonly number[]): void;
  /** Something about the claim has changed on the server: ask. */
  recheck(): void;
  /** Somebody released the claim by force. */
  revoked(forced?: Forced): void;
}

/** With who and why, percent-encoded: 256 bytes each, as `forcedNote` writes them. */
const FORCED = /^-(\d{1,16})(?: ([!%'-*.\w~-]{0,768})\/([!%'-*.\w~-]{0,768}))?$/;

/** What ends the message of a forced release; nothing if nothing was said. */
export function forcedNote({ by = "", reason = "" }: Partial<Forced>): string {
  return by + reason === "" ? "" : ` ${encodeURIComponent(by)}/${encodeURIComponent(reason)}`;
}

function forcedOf(by: string, reason = ""): Forced {
  const said = (words: string): string | undefined => (words === "" ? undefined : decodeWords(words));
  return { by: said(by), reason: said(reason) };
}

/** Opens the inbox when it is first needed, and hands messages to the claims that they name. */
export class Mailbox<Listener extends Recipient = Recipient> {
  readonly #store: Store;
  readonly #channel: string;
  readonly #recipients = new Registry<Listener>();
  readonly #onStray: (number: number, token: number) => void;
  readonly #onHeard: () => void;
  #inbox: Inbox | undefined;
  #opening: Promise<void> | undefined;
  #closed = false;

  /** True once it is certain that this client can never listen: its waiters must not queue. */
  unsupported = false;
  #isForbidden = false;

  /**
   * @param onStray  called for a grant to a claim that nobody here answers for
   * @param onHeard  called for each message that comes through this inbox, whatever it says
   */
  constructor(
    store: Store,
    channel: string,
    onStray: (number: number, token: number) => void,
    onHeard: () => void = () => {},
  ) {
    this.#onHeard = onHeard;
    this.#store = store;
    this.#channel = channel;
    this.#onStray = onStray;
  }

  /** Whether the server can reach this client: only then may a claim queue. */
  get isOpen(): boolean {
    return this.#inbox !== undefined;
  }

  /** The inbox, once it is open. */
  get inbox(): Inbox | undefined {
    return this.#inbox;
  }

  /** Whether it cannot listen, now or ever: kinds that have to be counted to be served must be counted all the same. */
  get isDeaf(): boolean {
    return this.unsupported || (this.#isForbidden && this.#inbox === undefined);
  }

  /** How many claims wait, hold or depart. */
  get size(): number {
    return this.#recipients.size;
  }

  /** Resolves when the subscription is confirmed. @throws StoreError, UnsupportedError */
  open(timeoutMs: number): Promise<void> {
    if (this.#inbox !== undefined) return Promise.resolve();
    this.#opening ??= this.#openOnce(timeoutMs).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Messages that name `number` go to `recipient` from now on. */
  register(number: number, recipient: Listener): void {
    this.#recipients.set(number, recipient);
  }

  /** Ends that, unless somebody else has registered for the number since. */
  unregister(number: number, recipient: Recipient): void {
    if (this.#recipients.get(number) === recipient) this.#recipients.delete(number);
  }

  /** Who gets the messages that name `number`. */
  recipient(number: number): Listener | undefined {
    return this.#recipients.get(number);
  }

  /** A copy, so that whoever is called may unregister. */
  recipients(): Listener[] {
    return this.#recipients.values();
  }

  /** Stops listening. */
  async close(): Promise<void> {
    this.#closed = true;
    const inbox = this.#inbox;
    this.#inbox = undefined;
    await inbox?.close();
  }

  async #openOnce(timeoutMs: number): Promise<void> {
    let inbox: Inbox;
    try {
      const onMessage = (message: string): void => {
        this.#onHeard();
        this.deliver(message);
      };
      inbox = await this.#store.inbox(this.#channel, onMessage, timeoutMs);
    } catch (error) {
      if (error instanceof UnsupportedError) this.unsupported = true;
      // It may be permitted one day, so it is tried again.
      this.#isForbidden = error instanceof StoreError && error.missingPermission !== undefined;
      throw error;
    }
    if (this.#closed) await inbox.close();
    else this.#inbox = inbox;
  }

  /**
   * `+<number> <token> <µs>[ <slot>,<slot>…]` is a grant, `-<number>[ <by>/<reason>]` a forced release, `~<number>` a hint
   * to ask. `=<number>` is an echo, which says nothing but that it has arrived; anything else is not from us.
   */
  deliver(message: string): void {
    const forced = FORCED.exec(message);
    if (forced !== null) {
      const [, number, by, reason] = forced;
      this.#recipients.get(Number(number))?.revoked(by === undefined ? undefined : forcedOf(by, reason));
      return;
    }
    const match = /^([+~])(\d{1,16})(?: (\d{1,16}) (\d{1,16})(?: ([\d,]+))?)?$/.exec(message);
    if (match === null) return;
    const [, sort, number, token, grantedAtUs, slots] = match;
    const recipient = this.#recipients.get(Number(number));
    if (sort === "~") recipient?.recheck();
    else if (grantedAtUs !== undefined) {
      const numbers = slots === undefined ? [] : slots.split(",").map(Number);
      if (recipient === undefined) this.#onStray(Number(number), Number(token));
      else recipient.granted(Number(token), Number(grantedAtUs), numbers);
    }
  }
}

/** Longer than waiters go without asking; short of keeping an inbox for each name of a long life. */
const KEEP_MS = 30_000;

/** Opens a channel. */
export type OpenInbox = (channel: string, timeoutMs: number) => Promise<Inbox>;

interface SlotInbox {
  readonly inbox: Inbox;
  usedAtMs: number;
}

/**
 * In a cluster: an inbox in each slot in which this client waits.
 *
 * The server of a slot can only count the listeners that it has itself, and a waiter that is not counted is taken for dead.
 * An inbox is opened when it is first needed, and closed a while after the last waiter has asked: whoever waits asks
 * every few seconds, and each time it is noted.
 *
 * An inbox is named by what a client id is appended to for its channel.
 */
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

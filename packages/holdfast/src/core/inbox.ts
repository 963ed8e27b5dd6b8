/**
 * The inbox of a client: subscribes to its channel, or to one per cluster slot, and delivers messages to claims.
 */
import { type Forced, StoreError, UnsupportedError } from "./errors.js";
import { decodeWords } from "./protocol.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import type { Inbox, Store } from "./store.js";

/** Number of places in the ring of a registry. */
const SIZE = 4_096;

/**
 * A map whose keys are increasing numbers, for many short-lived entries.
 *
 * A Map that gains and loses an entry per acquire leaves a chain of old tables, which the garbage collector frees late
 * (measured cost: 5 to 7 of the 46 µs that an acquire and a release take). So entries go into a ring, where most are
 * deleted before another number needs their place. If its place is taken, an entry goes into a Map.
 */
export class Registry<Value> {
  readonly #numbers = new Float64Array(SIZE);
  readonly #values = Array<Value | undefined>(SIZE);
  readonly #rest = new Map<number, Value>();
  #size = 0;

  /** The number of entries. */
  get size(): number {
    return this.#size;
  }

  /** Returns the value for `number`, a whole number of 1 or more. */
  get(number: number): Value | undefined {
    const at = number % SIZE;
    return this.#numbers[at] === number ? this.#values[at] : this.#rest.get(number);
  }

  /** Adds an entry, or replaces its value. */
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

  /**
   * Calls `visit` for each value. `visit` may change the registry. Values that it removes are not visited; values that
   * it adds might be.
   */
  forEach(visit: (value: Value) => void): void {
    for (const value of this.#values) if (value !== undefined) visit(value);
    this.#rest.forEach(visit);
  }
}

// --- The client's inbox: one channel on which the server pushes grants and notices to this process.
//
// A message only reports a fact that the server stores. If the message is lost, a later re-check of the waiter finds
// that fact. Holdfast accepts a grant by message without asking the server, because asking would cost a round trip per
// hand-over. So it trusts a client that can publish to this channel as much as a client that can write the keys. The
// name of the channel cannot be guessed.

/** A receiver of messages: a claim that is waiting, granted, or being cleaned up. */
export interface Recipient {
  /** The server granted the claim at `grantedAtUs`, which is server time in µs since 1970. */
  granted(token: number, grantedAtUs: number, slots: readonly number[]): void;
  /** The state of the claim may have changed, so the recipient asks the server. */
  recheck(): void;
  /** The claim was force-released. */
  revoked(forced?: Forced): void;
}

/**
 * The notice of a forced release. Its `by` and `reason` have at most 256 bytes each before `forcedNote`
 * percent-encodes them.
 */
const FORCED = /^-(\d{1,16})(?: ([!%'-*.\w~-]{0,768})\/([!%'-*.\w~-]{0,768}))?$/;

/** Returns the suffix of a forced-release message that carries `by` and `reason`; empty if both are absent. */
export function forcedNote({ by = "", reason = "" }: Partial<Forced>): string {
  return by + reason === "" ? "" : ` ${encodeURIComponent(by)}/${encodeURIComponent(reason)}`;
}

function forcedOf(by: string, reason = ""): Forced {
  const said = (words: string): string | undefined => (words === "" ? undefined : decodeWords(words));
  return { by: said(by), reason: said(reason) };
}

/** Opens the inbox when it is first needed, and delivers each message to the claim that it names. */
export class ClientInbox<Listener extends Recipient = Recipient> {
  readonly #store: Store;
  readonly #channel: string;
  readonly #recipients = new Registry<Listener>();
  readonly #onStray: (number: number, token: number) => void;
  readonly #onHeard: () => void;
  #inbox: Inbox | undefined;
  #opening: Promise<void> | undefined;
  #closed = false;

  /** True once it is certain that this client can never subscribe. Then its waiters must not join a queue. */
  unsupported = false;
  #isForbidden = false;

  /**
   * @param onStray  called for a grant to a claim that is not registered here
   * @param onHeard  called for each message to this inbox, whatever its content
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

  /** Whether the server can send messages to this client. Claims may join a queue only if it can. */
  get isOpen(): boolean {
    return this.#inbox !== undefined;
  }

  /** The inbox; undefined until it is open. */
  get inbox(): Inbox | undefined {
    return this.#inbox;
  }

  /**
   * True if this client cannot subscribe, temporarily or permanently. Kinds that otherwise serve only waiters with a
   * counted subscriber must serve this client too.
   */
  get isDeaf(): boolean {
    return this.unsupported || (this.#isForbidden && this.#inbox === undefined);
  }

  /** The number of registered claims, which are waiting, granted, or being cleaned up. */
  get size(): number {
    return this.#recipients.size;
  }

  /** Subscribes. Resolves when the server has confirmed the subscription. @throws StoreError, UnsupportedError */
  open(timeoutMs: number): Promise<void> {
    if (this.#inbox !== undefined) return Promise.resolve();
    this.#opening ??= this.#openOnce(timeoutMs).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Delivers messages that name `number` to `recipient` from now on. */
  register(number: number, recipient: Listener): void {
    this.#recipients.set(number, recipient);
  }

  /** Undoes `register`, unless another recipient has registered for the number since. */
  unregister(number: number, recipient: Recipient): void {
    if (this.#recipients.get(number) === recipient) this.#recipients.delete(number);
  }

  /** Returns the recipient of messages that name `number`. */
  recipient(number: number): Listener | undefined {
    return this.#recipients.get(number);
  }

  /** Returns a copy of the list of recipients, so that they can unregister during an iteration. */
  recipients(): Listener[] {
    const copy: Listener[] = [];
    this.#recipients.forEach((recipient) => {
      copy.push(recipient);
    });
    return copy;
  }

  /** Ends the subscription. */
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
      // This state is not permanent, because an operator may grant the permission later.
      this.#isForbidden = error instanceof StoreError && error.missingPermission !== undefined;
      throw error;
    }
    if (this.#closed) await inbox.close();
    else this.#inbox = inbox;
  }

  /**
   * Delivers one message to the claim that it names.
   *
   * - `+<number> <token> <µs>[ <slot>,<slot>…]`: a grant
   * - `-<number>[ <by>/<reason>]`: a forced release
   * - `~<number>`: a hint to ask the server
   * - `=<number>`: an echo, which is ignored here
   *
   * Ignores all other messages, because they are not from Holdfast.
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

/**
 * How long an unused slot inbox stays open, in ms. This is longer than the time between two re-checks, but short enough
 * to keep a long-lived process from accumulating an inbox for each name that it has ever used.
 */
const KEEP_MS = 30_000;

/** Subscribes to a channel. */
export type OpenInbox = (channel: string, timeoutMs: number) => Promise<Inbox>;

interface SlotInbox {
  readonly inbox: Inbox;
  usedAtMs: number;
}

/**
 * The inboxes of a client in a cluster: one in each slot in which it waits.
 *
 * The server of a slot counts only its own subscribers, and treats a waiter without a subscriber as gone. An inbox
 * opens when it is first needed, and closes when it has not been used for `KEEP_MS`. Waiters re-check every few
 * seconds, and each re-check uses their inbox, so it stays open while they wait.
 *
 * The name of an inbox is the prefix of its channel; the client id follows the prefix.
 */
export class SlotInboxes {
  readonly #openInbox: OpenInbox;
  readonly #clientId: string;
  readonly #runtime: Runtime;
  readonly #open = new Map<string, SlotInbox>();
  readonly #opening = new Map<string, Promise<void>>();
  readonly #sweeping: SharedTimer;
  #isClosed = false;

  /** Opens no inbox until `open` is called. */
  constructor(openInbox: OpenInbox, clientId: string, runtime: Runtime) {
    this.#openInbox = openInbox;
    this.#clientId = clientId;
    this.#runtime = runtime;
    this.#sweeping = new SharedTimer(runtime, () => this.#sweep());
  }

  /** Returns the inbox if the server has confirmed it, and extends its life. */
  use(name: string): Inbox | undefined {
    const found = this.#open.get(name);
    if (found === undefined) return undefined;
    found.usedAtMs = this.#runtime.monotonicMs();
    return found.inbox;
  }

  /** Returns the inbox if the server has confirmed it, without extending its life. */
  find(name: string): Inbox | undefined {
    return this.#open.get(name)?.inbox;
  }

  /** Opens an inbox. Resolves when the server has confirmed the subscription. @throws StoreError, UnsupportedError */
  open(name: string, timeoutMs: number): Promise<void> {
    if (this.use(name) !== undefined) return Promise.resolve();
    const under = this.#opening.get(name);
    if (under !== undefined) return under;
    const opening = this.#openOnce(name, timeoutMs).finally(() => this.#opening.delete(name));
    this.#opening.set(name, opening);
    return opening;
  }

  /** Closes all inboxes. */
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

/**
 * The client's inbox: one channel on which the server pushes grants and notices to this process.
 *
 * Losing a message costs time, never a lock: it is about a fact that the server holds, and whoever waits for it asks
 * in time. A grant is believed without asking, because asking would cost a round trip for each hand-over: whoever may
 * publish to this channel, whose name is not to be guessed, is trusted as much as whoever may write the keys.
 */
import { type Forced, StoreError, UnsupportedError } from "./errors.js";
import { decodeWords } from "./owner.js";
import { Registry } from "./registry.js";
import type { Inbox, Store } from "./store.js";

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

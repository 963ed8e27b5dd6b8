/**
 * The local line of callers that want the same foreign lock. Only the caller in front sends requests, so the load
 * on the server does not grow with the number of callers in a process.
 */

import { UnsupportedError } from "../core/errors.js";
import type { Timer } from "../core/runtime.js";
import type { Session } from "../core/session.js";
import type { Inbox } from "../core/store.js";

/** A caller in a line. */
export interface InLine {
  /** Called when the caller reaches the front. */
  advance(): void;
  /** Called when this caller is in front and the lock may have changed. The caller then sends a request. */
  heard(): void;
}

/**
 * Subscribes to the messages of the protocol. Calls `onNews` for each message after which a request may succeed.
 *
 * @throws UnsupportedError  this client can never subscribe
 * @throws StoreError        the subscription failed this time
 */
export type Listen = (onNews: () => void) => Promise<Inbox>;

/** How long to keep the subscription of an empty line, in ms. A busy lock soon has another waiter, which reuses it. */
const LINGER_MS = 5_000;

const lines = new WeakMap<Session, Map<string, Line>>();

/** Returns the line of all callers of `session` with the same `key`. */
export function lineOf(session: Session, key: string): Line {
  const ofSession = lines.get(session) ?? new Map<string, Line>();
  lines.set(session, ofSession);
  const line = ofSession.get(key) ?? new Line(session, LINGER_MS, () => void ofSession.delete(key));
  ofSession.set(key, line);
  return line;
}

/** Returns a line for a single caller, for locks whose server keeps the order and for callers that do not wait. */
export function lineOfOne(session: Session): Line {
  return new Line(session, 0, () => {});
}

/** Callers that want the same lock, first come, first served. They share one subscription. */
export class Line {
  readonly #session: Session;
  readonly #lingerMs: number;
  readonly #onEmpty: () => void;
  readonly #members = new Set<InLine>();
  #front: InLine | undefined;
  #subscriber: Inbox | undefined;
  #isOpening = false;
  #isDeaf = false;
  #isClosed = false;
  #linger: Timer | undefined;

  /** @param onEmpty  called once, when the line has been empty for `lingerMs`; the line must not be used after that */
  constructor(session: Session, lingerMs: number, onEmpty: () => void) {
    this.#session = session;
    this.#lingerMs = lingerMs;
    this.#onEmpty = onEmpty;
  }

  /** Joins the line at its end. If the line is empty, calls `member.advance()` synchronously. */
  join(member: InLine): void {
    this.#linger?.cancel();
    this.#members.add(member);
    if (this.#front !== undefined) return;
    this.#front = member;
    member.advance();
  }

  /** Leaves the line from any position. If `member` was in front, the next one advances. A second call does nothing. */
  leave(member: InLine): void {
    if (!this.#members.delete(member)) return;
    if (this.#front === member) {
      const [next] = this.#members;
      this.#front = next;
      next?.advance();
    }
    if (this.#members.size > 0 || this.#isClosed) return;
    this.#linger?.cancel();
    if (this.#lingerMs === 0 || this.#session.isClosing) this.#close();
    else this.#linger = this.#session.runtime.startTimer(() => this.#close(), this.#lingerMs, false);
  }

  /** Subscribes unless already subscribed. Then the caller in front asks again, because it may have missed messages. */
  listen(open: Listen): void {
    if (this.#subscriber !== undefined || this.#isOpening || this.#isDeaf || this.#isClosed) return;
    this.#isOpening = true;
    void this.#open(open);
  }

  async #open(open: Listen): Promise<void> {
    try {
      const subscriber = await open(() => this.#front?.heard());
      if (this.#isClosed) {
        await subscriber.close();
        return;
      }
      this.#subscriber = subscriber;
      this.#front?.heard();
    } catch (error) {
      // Other failures may be temporary, so the next refusal starts another attempt. Until then, the waiter polls.
      if (error instanceof UnsupportedError) this.#isDeaf = true;
    } finally {
      this.#isOpening = false;
    }
  }

  #close(): void {
    this.#isClosed = true;
    this.#onEmpty();
    void this.#subscriber?.close();
  }
}

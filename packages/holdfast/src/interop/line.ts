/**
 * Those of one Holdfast who want the same lock of another system: one of them asks, the others stand behind it, first come,
 * first served, so that a crowd in one process costs the server no more than one. They share one subscriber connection as well.
 */
import { type Inbox, UnsupportedError } from "../index.js";
import type { Session, Timer } from "../internal.js";

/** Somebody in a line. */
export interface InLine {
  /** From now on it is in front. */
  advance(): void;
  /** Something may have changed: ask. Only the one in front is told. */
  heard(): void;
}

/**
 * Listens where the protocol tells of changes, and calls `onNews` for each message after which asking may be worth it.
 *
 * @throws UnsupportedError  this client cannot listen, and never will
 * @throws StoreError        it could not listen now
 */
export type Listen = (onNews: () => void) => Promise<Inbox>;

/** A subscriber connection is kept for so long after the last waiter: a busy lock has the next one soon. */
const LINGER_MS = 5_000;

const lines = new WeakMap<Session, Map<string, Line>>();

/** The line of all callers of that session who name the same `key`. */
export function lineOf(session: Session, key: string): Line {
  const ofSession = lines.get(session) ?? new Map<string, Line>();
  lines.set(session, ofSession);
  const line = ofSession.get(key) ?? new Line(session, LINGER_MS, () => void ofSession.delete(key));
  ofSession.set(key, line);
  return line;
}

/** A line for one caller alone, for a lock whose server keeps an order of its own. */
export function lineOfOne(session: Session): Line {
  return new Line(session, 0, () => {});
}

/** See the file header. */
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

  /** @param onEmpty  called once when nobody has stood in it for `lingerMs`, and never used again then */
  constructor(session: Session, lingerMs: number, onEmpty: () => void) {
    this.#session = session;
    this.#lingerMs = lingerMs;
    this.#onEmpty = onEmpty;
  }

  /** Stands in line; whoever is first there is told to advance, in this turn. */
  join(member: InLine): void {
    this.#linger?.cancel();
    this.#members.add(member);
    if (this.#front !== undefined) return;
    this.#front = member;
    member.advance();
  }

  /** Leaves it, from any place. A second call does nothing. */
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

  /** Listens from now on, if it does not yet. What was told before that is asked for once it does. */
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
      // Any other failure may pass, and the next refusal tries it again; until then whoever waits asks by the clock.
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

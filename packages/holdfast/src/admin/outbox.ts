/**
 * Events of history on their way to the server: some at a time, tried again, and given up at last.
 *
 * Invariants: what waits is bounded, and the oldest goes first; nothing that goes wrong here reaches whoever tells. It is counted,
 * and told on the channel `holdfast:history`.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import { SharedTimer } from "../internal.js";
import { append, type HistoryEvent, type Keep, textOf } from "./history.js";
import { eachOf, type Place } from "./place.js";

/** `holdfast:history`: events could not be written. */
export interface HistoryTroubleEvent {
  readonly name: string;
  /** How many events it concerns. */
  readonly events: number;
  /** Whether they are given up; else they are tried again. */
  readonly dropped: boolean;
  readonly error: unknown;
}

const trouble: Channel = channel("holdfast:history");

/** How many events wait at most, of all names together. */
const MOST_WAITING = 10_000;
/** How often events are tried. */
const TRIES = 10;
const AT_ONCE = 10;

/** An event that speaks of no hold has an id, so that it is told once however often it is sent. */
export type Identified = HistoryEvent & { readonly id?: string };

/** An event that waits to be written. */
interface Waiting {
  readonly event: Identified;
  readonly atMonotonicMs: number;
  readonly hold: string | undefined;
}

/** See the file header. */
export class Outbox {
  appended = 0;
  dropped = 0;
  readonly #place: Place;
  readonly #everyMs: number;
  readonly #keep: Keep;
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #failures = new Map<string, number>();
  #waitingCount = 0;
  readonly #timer: SharedTimer;
  #flushing: Promise<void> = Promise.resolve();
  #isStopping = false;

  /** @param everyMs  how long an event waits for others to be written with it, and to be tried again */
  constructor(place: Place, everyMs: number, keep: Keep) {
    this.#place = place;
    this.#everyMs = everyMs;
    this.#keep = keep;
    this.#timer = new SharedTimer(place.session.runtime, () => void this.flush());
  }

  /** @param hold  which hold it begins or ends */
  add(event: Identified, hold?: string): void {
    const waiting = this.#waiting.get(event.name) ?? [];
    this.#waiting.set(event.name, waiting);
    waiting.push({ event, hold, atMonotonicMs: this.#nowMs() });
    this.#waitingCount += 1;
    // More of one name than are kept would push each other out on the server.
    if (waiting.length > this.#keep.maxEntries) {
      waiting.shift();
      this.#waitingCount -= 1;
    } else if (this.#waitingCount > MOST_WAITING) this.#dropOldest();
    this.#timer.ensure(this.#everyMs);
  }

  /** Takes back what was told of that hold, if it still waits: what comes next says it too. */
  takeBack(name: string, hold: string): Identified | undefined {
    const waiting = this.#waiting.get(name);
    const at = waiting?.findIndex((one) => one.hold === hold) ?? -1;
    const [found] = at < 0 || waiting === undefined ? [] : waiting.splice(at, 1);
    if (found !== undefined) this.#waitingCount -= 1;
    return found?.event;
  }

  /** Writes what waits. Never rejects. */
  flush(): Promise<void> {
    this.#timer.cancel();
    this.#flushing = this.#flushing.then(() => this.#writeAll());
    return this.#flushing;
  }

  /** As `flush`, and gives up what cannot be written. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.flush();
    this.#timer.cancel();
    for (const [name, events] of this.#waiting) this.drop(name, events.length, undefined);
    this.#waiting.clear();
  }

  /** So many events of that name will not be written. */
  drop(name: string, events: number, error: unknown): void {
    this.dropped += events;
    tell({ name, events, dropped: true, error });
  }

  #dropOldest(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [name, events] = first;
    this.#waiting.delete(name);
    this.#waitingCount -= events.length;
    this.drop(name, events.length, new Error(`more than ${MOST_WAITING} events wait to be written`));
  }

  async #writeAll(): Promise<void> {
    const all = [...this.#waiting];
    this.#waiting.clear();
    this.#waitingCount = 0;
    await eachOf(all, AT_ONCE, ([name, events]) => this.#write(name, events));
  }

  async #write(name: string, events: Waiting[]): Promise<void> {
    const nowMs = this.#nowMs();
    const written = events.map(({ event, atMonotonicMs }) => {
      return { text: textOf(this.#place, event), agoMs: nowMs - atMonotonicMs };
    });
    try {
      await append(this.#place, name, written, this.#keep);
      this.#failures.delete(name);
      this.appended += events.length;
    } catch (error) {
      const failures = (this.#failures.get(name) ?? 0) + 1;
      const isOver = failures >= TRIES || this.#isStopping || this.#place.session.isClosing;
      if (isOver) {
        this.#failures.delete(name);
        this.drop(name, events.length, error);
        return;
      }
      this.#failures.set(name, failures);
      tell({ name, events: events.length, dropped: false, error });
      const later = this.#waiting.get(name) ?? [];
      const both = [...events, ...later].slice(-this.#keep.maxEntries);
      this.#waiting.set(name, both);
      this.#waitingCount += both.length - later.length;
      while (this.#waitingCount > MOST_WAITING) this.#dropOldest();
      this.#timer.ensure(this.#everyMs);
    }
  }

  #nowMs(): number {
    return this.#place.session.runtime.monotonicMs();
  }
}

function tell(event: HistoryTroubleEvent): void {
  if (trouble.hasSubscribers) trouble.publish(event);
}

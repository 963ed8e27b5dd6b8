/**
 * Sends history events to the server in batches, and resends those that an unreachable server did not get.
 *
 * Invariants:
 * - The number of waiting events is bounded. The oldest are dropped first.
 * - Failures do not reach the caller. They are counted and published on the channel `holdfast:history`.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import { StoreError } from "../core/errors.js";
import { SharedTimer } from "../core/runtime.js";
import { append, type HistoryEvent, type Keep, textOf } from "./history.js";
import { eachOf, type Place } from "./place.js";

/** `holdfast:history`: history events could not be written. */
export interface HistoryTroubleEvent {
  /** Name of the lock. */
  readonly name: string;
  /** The number of events. */
  readonly events: number;
  /** Whether the events are dropped. If false, they are retried. */
  readonly dropped: boolean;
  /** Why the events could not be written. */
  readonly error: unknown;
}

const trouble: Channel = channel("holdfast:history");

/** Maximum number of waiting events, for all names together. */
const MOST_WAITING = 10_000;
/** After this many refused attempts, the events of a name are dropped. */
const TRIES = 10;
const AT_ONCE = 10;

/** An event without a token has an id, so that it appears only once in the history even if it is sent several times. */
export type Identified = HistoryEvent & { readonly id?: string };

/** An event that is waiting to be written. */
interface Waiting {
  readonly event: Identified;
  readonly atMonotonicMs: number;
  readonly hold: string | undefined;
}

/** Sends history events to the server in batches. */
export class Outbox {
  /** The number of events written. */
  appended = 0;
  /** The number of events that were dropped. */
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

  /** @param everyMs  how long to collect events for one request, and the delay before a retry, in ms */
  constructor(place: Place, everyMs: number, keep: Keep) {
    this.#place = place;
    this.#everyMs = everyMs;
    this.#keep = keep;
    this.#timer = new SharedTimer(place.session.runtime, () => void this.flush());
  }

  /** Adds an event. @param hold  id of the hold that the event begins or ends */
  add(event: Identified, hold?: string): void {
    const waiting = this.#waiting.get(event.name) ?? [];
    this.#waiting.set(event.name, waiting);
    waiting.push({ event, hold, atMonotonicMs: this.#nowMs() });
    this.#waitingCount += 1;
    // The history of a name keeps only about this many events, so older ones need not be sent.
    if (waiting.length > this.#keep.maxEntries) {
      waiting.shift();
      this.#waitingCount -= 1;
    } else if (this.#waitingCount > MOST_WAITING) this.#dropOldest();
    this.#timer.ensure(this.#everyMs);
  }

  /**
   * Removes and returns the waiting event of a hold, because the next event of the hold contains the same information.
   *
   * @returns undefined if no event of the hold is waiting
   */
  takeBack(name: string, hold: string): Identified | undefined {
    const waiting = this.#waiting.get(name);
    const at = waiting?.findIndex((one) => one.hold === hold) ?? -1;
    const [found] = at < 0 || waiting === undefined ? [] : waiting.splice(at, 1);
    if (found !== undefined) this.#waitingCount -= 1;
    return found?.event;
  }

  /** Sends the waiting events. Never rejects. */
  flush(): Promise<void> {
    this.#timer.cancel();
    this.#flushing = this.#flushing.then(() => this.#writeAll());
    return this.#flushing;
  }

  /** Sends the waiting events, and drops those that cannot be written. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.flush();
    this.#timer.cancel();
    for (const [name, events] of this.#waiting) this.drop(name, events.length, undefined);
    this.#waiting.clear();
  }

  /** Counts events that will not be written, and publishes the loss on the channel `holdfast:history`. */
  drop(name: string, events: number, error: unknown): void {
    this.dropped += events;
    publishTrouble({ name, events, dropped: true, error });
  }

  #dropOldest(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [name, events] = first;
    this.#waiting.delete(name);
    this.#waitingCount -= events.length;
    this.drop(name, events.length, new Error(`more than ${MOST_WAITING} events are waiting to be written`));
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
      // Retry without a time limit while the server is unreachable, because the events show who lost a lease in the
      // meantime.
      const isAway = error instanceof StoreError && error.transient;
      const failures = (this.#failures.get(name) ?? 0) + (isAway ? 0 : 1);
      const isOver = failures >= TRIES || this.#isStopping || this.#place.session.isClosing;
      if (isOver) {
        this.#failures.delete(name);
        this.drop(name, events.length, error);
        return;
      }
      this.#failures.set(name, failures);
      publishTrouble({ name, events: events.length, dropped: false, error });
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

function publishTrouble(event: HistoryTroubleEvent): void {
  if (trouble.hasSubscribers) trouble.publish(event);
}

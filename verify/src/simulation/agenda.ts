/** The queue of future events in virtual time. Only these events advance the time. */

/** A future event. */
export interface Event {
  readonly atMs: number;
  /** Increases, so that events at the same instant happen in the order in which they were planned. */
  readonly order: number;
  readonly what: string;
  readonly happen: () => void;
  /** Whether the event was canceled. */
  isOff: boolean;
}

/** A queue of events, earliest first. */
export class Agenda {
  readonly #heap: Event[] = [];
  #order = 0;

  add(atMs: number, what: string, happen: () => void): Event {
    this.#order += 1;
    const event: Event = { atMs, order: this.#order, what, happen, isOff: false };
    const heap = this.#heap;
    let place = heap.length;
    heap.push(event);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = heap[above] as Event;
      if (!isBefore(event, parent)) break;
      heap[place] = parent;
      place = above;
    }
    heap[place] = event;
    return event;
  }

  /** Removes and returns the next event. */
  take(): Event | undefined {
    for (;;) {
      const event = this.#takeFirst();
      if (event === undefined || !event.isOff) return event;
    }
  }

  #takeFirst(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let place = 0;
    for (;;) {
      let below = place * 2 + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Event, heap[below] as Event)) below += 1;
      const child = heap[below] as Event;
      if (!isBefore(child, last)) break;
      heap[place] = child;
      place = below;
    }
    heap[place] = last;
    return first;
  }

  /** Descriptions of the remaining events, for a message. */
  rest(): string[] {
    return this.#heap.filter(({ isOff }) => !isOff).map(({ atMs, what }) => `${atMs.toFixed(1)} ${what}`);
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/**
 * The event stream. Each viewer first gets the complete state of its topics, then changes, each with an id. A viewer
 * that reconnects with a known id gets the events that it missed. A viewer that reconnects too late or reads too
 * slowly gets the complete state again.
 */
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Viewer } from "./access.js";
import type { Topic } from "./api.js";
import type { LockPlace } from "./place.js";
import type { Poller } from "./poller.js";
import { HttpProblem } from "./problem.js";
import type { Change } from "./snapshot.js";
import type { StoreLink } from "./store-link.js";
import type { StreamView } from "./stream-view.js";

const BEAT_MS = 15_000;
const MOST_STREAMS = 200;
/** How long the poller continues after a stream has ended. */
const LINGER_MS = 3_000;
const MOST_LINGERING = 20;
/** Maximum number of changes, and of rows in them, kept for reconnecting viewers. */
const MOST_KEPT = 256;
const MOST_KEPT_ROWS = 20_000;
/** A stream with more unsent bytes is slow. */
const SLOW_BYTES = 1_048_576;
/** How long a browser waits before it reconnects, in ms. */
const RETRY_MS = 1_000;

/** What a viewer subscribes to. */
export interface Subscription {
  readonly viewer: Viewer;
  readonly topics: ReadonlySet<Topic>;
  readonly lock: LockPlace | undefined;
  /** The last event id that the viewer has received; undefined for a new viewer. */
  readonly lastId: string | undefined;
}

interface PastChange {
  readonly number: number;
  readonly change: Change;
}

/** All streams of a console. */
export class Streams {
  /** Makes the ids of another process, or of this one before a restart, invalid. */
  readonly #epoch = randomBytes(6).toString("base64url");
  readonly #poller: Poller;
  readonly #link: StoreLink;
  readonly #open = new Set<Stream>();
  readonly #lingering = new Map<() => void, NodeJS.Timeout>();
  readonly #kept: PastChange[] = [];
  #keptRows = 0;
  #number = 0;
  #isClosed = false;

  constructor(poller: Poller, link: StoreLink) {
    this.#poller = poller;
    this.#link = link;
    poller.onChange = (change) => this.#publish(change);
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Opens a stream. @throws HttpProblem 503  too many streams, or the console is closed */
  open(res: ServerResponse, subscription: Subscription, view: StreamView): void {
    if (this.#isClosed) throw new HttpProblem(503, "closed", "The console is closing.");
    if (this.#open.size >= MOST_STREAMS) {
      throw new HttpProblem(503, "busy", `This console already serves ${MOST_STREAMS} streams.`, {
        headers: { "Retry-After": "10" },
      });
    }
    res.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      // Keeps proxies and compressing middleware from buffering events.
      "Cache-Control": "no-store, no-transform",
      "X-Accel-Buffering": "no",
    });
    // Disables the socket's idle timeout, because only the browser decides when the stream ends.
    res.socket?.setTimeout(0);
    res.socket?.setNoDelay(true);
    // Must run before the poller starts: a change that the poller finds right away is still new to this viewer.
    const missed = this.#missedSince(subscription.lastId);
    const stopWatching = this.#poller.watch({ topics: subscription.topics, lock: subscription.lock });
    const numbers = { idOf: (number: number) => `${this.#epoch}-${number}`, latest: () => this.#number };
    const stream: Stream = new Stream(res, view, numbers, () => {
      this.#open.delete(stream);
      this.#linger(stopWatching);
    });
    this.#open.add(stream);
    stream.begin(missed);
  }

  /** Ends all streams. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#open) stream.end();
    for (const stop of [...this.#lingering.keys()]) this.#stop(stop);
    this.#forget();
  }

  /**
   * Keeps polling for a moment: a browser that lost its connection reconnects within a second or two and then misses
   * little.
   */
  #linger(stop: () => void): void {
    this.#lingering.set(stop, setTimeout(() => this.#stop(stop), LINGER_MS).unref());
    const [oldest] = this.#lingering.keys();
    if (this.#lingering.size > MOST_LINGERING && oldest !== undefined) this.#stop(oldest);
  }

  #stop(stop: () => void): void {
    clearTimeout(this.#lingering.get(stop));
    this.#lingering.delete(stop);
    stop();
    if (this.#open.size === 0 && this.#lingering.size === 0) this.#forget();
  }

  /** Invalidates all ids when polling stops, because changes from then on are not seen. */
  #forget(): void {
    this.#kept.length = 0;
    this.#keptRows = 0;
    this.#number += 1;
  }

  #publish(change: Change): void {
    this.#number += 1;
    const number = this.#number;
    this.#kept.push({ number, change });
    this.#keptRows += rowsIn(change);
    while (this.#kept.length > MOST_KEPT || (this.#keptRows > MOST_KEPT_ROWS && this.#kept.length > 1)) {
      const oldest = this.#kept.shift();
      this.#keptRows -= oldest === undefined ? 0 : rowsIn(oldest.change);
    }
    for (const stream of this.#open) stream.publish(number, change);
  }

  /** The changes since that id; undefined if they are no longer known. */
  #missedSince(id: string | undefined): readonly PastChange[] | undefined {
    const [, epoch, text] = /^([\w-]+)-(\d+)$/.exec(id ?? "") ?? [];
    const last = Number(text);
    if (epoch !== this.#epoch || last > this.#number) return undefined;
    if (this.#link.store.state !== "up") return undefined;
    const oldest = this.#kept[0]?.number ?? this.#number + 1;
    return last + 1 >= oldest ? this.#kept.filter(({ number }) => number > last) : undefined;
  }
}

/** One viewer's stream. Events are sent in order, even if authorization checks take time. */
class Stream {
  readonly #res: ServerResponse;
  readonly #view: StreamView;
  readonly #idOf: (number: number) => string;
  readonly #latest: () => number;
  readonly #onEnd: () => void;
  readonly #timer: NodeJS.Timeout;
  #sending: Promise<void> = Promise.resolve();
  /** Whether the viewer has received all of its topics; until then it gets the complete state each time. */
  #isWhole = false;
  #isWholeDue = false;
  #isOver = false;
  #waiting = 0;

  constructor(
    res: ServerResponse,
    view: StreamView,
    numbers: { readonly idOf: (number: number) => string; readonly latest: () => number },
    onEnd: () => void,
  ) {
    this.#res = res;
    this.#view = view;
    this.#idOf = numbers.idOf;
    this.#latest = numbers.latest;
    this.#onEnd = onEnd;
    this.#timer = setInterval(() => this.#beat(), BEAT_MS).unref();
    res.on("close", this.#over);
    res.on("error", this.#over);
  }

  begin(missed: readonly PastChange[] | undefined): void {
    this.#write(`retry: ${RETRY_MS}\n\n`);
    if (missed === undefined) {
      this.#whole();
      return;
    }
    this.#isWhole = true;
    for (const { number: missedNumber, change } of missed) this.publish(missedNumber, change);
  }

  publish(number: number, change: Change): void {
    if (this.#isOver) return;
    // If changes pile up behind a slow reader or a slow check, sends the current state instead.
    if (this.#waiting > 16 || this.#res.writableLength > SLOW_BYTES) this.#isWhole = false;
    if (!this.#isWhole) {
      if (this.#res.writableLength <= SLOW_BYTES) this.#whole();
      return;
    }
    this.#queue(async () => {
      const data = await this.#view.change(change);
      if (data !== undefined) this.#event("change", number, data);
    });
  }

  /** Sends `end` and closes the stream. */
  end(): void {
    if (this.#isOver) return;
    this.#write("event: end\ndata: {}\n\n");
    this.#res.end();
    this.#over();
  }

  #whole(): void {
    if (this.#isWholeDue) return;
    this.#isWholeDue = true;
    this.#queue(async () => {
      // Changes after this point are sent separately. The id, the state and this flag belong to the same moment.
      this.#isWholeDue = false;
      const number = this.#latest();
      const { data, isComplete } = this.#view.state();
      this.#isWhole = isComplete;
      this.#event("state", number, await data);
    });
  }

  #queue(send: () => Promise<void>): void {
    this.#waiting += 1;
    this.#sending = this.#sending
      .then(() => (this.#isOver ? undefined : send()))
      .catch(() => this.#over())
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  /** Sends a beat. Ends the stream if the viewer no longer has access. */
  #beat(): void {
    this.#write("event: beat\ndata: {}\n\n");
    this.#queue(async () => {
      if (!(await this.#view.isAllowed())) this.end();
    });
  }

  #event(name: "state" | "change", number: number, data: object): void {
    this.#write(`id: ${this.#idOf(number)}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  #write(text: string): void {
    if (!this.#isOver) this.#res.write(text);
  }

  readonly #over = (): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#res.off("close", this.#over);
    this.#onEnd();
    if (!this.#res.writableEnded) this.#res.destroy();
  };
}

function rowsIn({ locks }: Change): number {
  return locks === undefined ? 1 : locks.changed.length + locks.removed.length;
}

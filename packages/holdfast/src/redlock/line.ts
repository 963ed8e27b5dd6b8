/**
 * Those of one Holdfast who want the same lock: one of them tries, the others stand behind it, so that a process does not
 * split the votes with itself. Each of them makes attempts of its own when it is in front; nothing is shared but the place.
 */

import type { Timer } from "../core/runtime.js";
import type { Session } from "../core/session.js";
import { type Pace, RECHECK_MS } from "./pace.js";
import type { QuorumServer } from "./servers.js";
import { Subscribers } from "./subscribers.js";

/** Somebody in a line. */
export interface InLine {
  /** From now on it is in front. */
  advance(): void;
  /** Somebody's hold has ended on that server. */
  released(server: number): void;
}

/** Subscriptions are kept for so long after the last waiter: a busy lock has the next one soon. */
const LINGER_MS = 5_000;

const LEAST_CROWDING = 1;
const MOST_CROWDING = 64;
/** So that of some four who come to the first server one is the first there, and the number of those who come stays as it is. */
const MORE = 1.4;
const LESS = 0.4;

/** See the file header. */
export class Line {
  readonly subscribers: Subscribers;
  readonly pace: Pace;
  readonly #session: Session;
  readonly #onEmpty: (line: Line) => void;
  readonly #members = new Set<InLine>();
  #front: InLine | undefined;
  #linger: Timer | undefined;
  /**
   * The server that an attempt asks first, while others want the lock too: the first one at which somebody else was met.
   * Processes that see the same servers come to the same one.
   */
  firstServer: number | undefined;
  /** Of how many winnings' time those who come to the first server after a release choose a moment. */
  crowding: number = LEAST_CROWDING;
  #wantedUntilMs = Number.NEGATIVE_INFINITY;
  /** When somebody gave back at the first server, or all servers were asked. */
  #movedAtMs = Number.NEGATIVE_INFINITY;
  /** Why the last attempt failed, while no server majority can be reached. */
  failure: unknown;

  constructor(
    session: Session,
    servers: readonly QuorumServer[],
    channel: string,
    pace: Pace,
    onEmpty: (line: Line) => void,
  ) {
    this.#session = session;
    this.pace = pace;
    this.#onEmpty = onEmpty;
    this.subscribers = new Subscribers(session, servers, channel, (server) => {
      if (server === this.firstServer) this.#moved();
      this.#front?.released(server);
    });
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
    this.#lingerIfEmpty();
  }

  /**
   * What was given back here on that server was heard by others. They come now, by a message and after a delay: who comes back
   * at once would be there before them every time.
   */
  heardByOthers(server: number): void {
    this.#wantedUntilMs = this.#session.runtime.monotonicMs() + this.pace.patienceMs;
    // Where they meet: the first server at which they met whoever has given back.
    this.firstServer = Math.min(this.firstServer ?? server, server);
    this.#lingerIfEmpty();
  }

  /** Whether others are on their way because of what was given back here. */
  get isWanted(): boolean {
    return this.#session.runtime.monotonicMs() < this.#wantedUntilMs;
  }

  /** An attempt goes to all servers at once. */
  asksAll(): void {
    this.#moved();
  }

  /** The server that an attempt asks first; undefined for all at once, also if the first server has not moved for so long that something may stand there. */
  get whereFirst(): number | undefined {
    return this.#session.runtime.monotonicMs() - this.#movedAtMs < RECHECK_MS ? this.firstServer : undefined;
  }

  /** Somebody was first at the first server, or was not. */
  passedFirst(isFirst: boolean): void {
    this.crowding = Math.min(MOST_CROWDING, Math.max(LEAST_CROWDING, this.crowding * (isFirst ? LESS : MORE)));
  }

  #moved(): void {
    this.#movedAtMs = this.#session.runtime.monotonicMs();
  }

  #lingerIfEmpty(): void {
    if (this.#members.size > 0) return;
    this.#linger?.cancel();
    this.#linger = this.#session.runtime.startTimer(() => this.close(), LINGER_MS, false);
  }

  /** Nobody waits any more. */
  close(): void {
    this.#linger?.cancel();
    this.#onEmpty(this);
    void this.subscribers.close();
  }
}

/**
 * The local queue of the callers of one Holdfast instance that want the same lock. Only the caller at the front makes
 * attempts, so that a process does not split the votes with itself.
 */

import type { Timer } from "../core/runtime.js";
import type { Session } from "../core/session.js";
import { type Pace, RECHECK_MS } from "./pace.js";
import type { QuorumServer } from "./servers.js";
import { Subscribers } from "./subscribers.js";

/** A caller in a line. */
export interface InLine {
  /** Called when this caller is at the front. */
  advance(): void;
  /** Called when a hold of the lock has ended on this server. */
  released(server: number): void;
}

/** How long subscriptions are kept after the last waiter, because a busy lock soon has the next one. */
const LINGER_MS = 5_000;

const LEAST_CROWDING = 1;
const MOST_CROWDING = 64;
/**
 * Factors of `crowding` after an attempt lost or won the first server. They balance when about one in four attempts
 * wins there, so the number of attempts stays stable.
 */
const MORE = 1.4;
const LESS = 0.4;

/** The local queue for one lock. */
export class Line {
  readonly subscribers: Subscribers;
  readonly pace: Pace;
  readonly #session: Session;
  readonly #onEmpty: (line: Line) => void;
  readonly #members = new Set<InLine>();
  #front: InLine | undefined;
  #linger: Timer | undefined;
  /**
   * The server that an attempt asks first while other processes want the lock too: the first one at which another
   * owner was found. Processes that reach the same servers choose the same one.
   */
  firstServer: number | undefined;
  /** Attempts after a release start at a random moment within this many times `Pace.winMs`, to spread them. */
  crowding: number = LEAST_CROWDING;
  #wantedUntilMs = Number.NEGATIVE_INFINITY;
  /** When the lock was last released at the first server, or all servers were last asked. */
  #movedAtMs = Number.NEGATIVE_INFINITY;
  /** The error of the last attempt, while no majority of the servers can be reached. */
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

  /** Adds a caller. If the line was empty, calls its `advance` in the same turn. */
  join(member: InLine): void {
    this.#linger?.cancel();
    this.#members.add(member);
    if (this.#front !== undefined) return;
    this.#front = member;
    member.advance();
  }

  /** Removes a caller, wherever it is in the line. A second call has no effect. */
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
   * Records that other processes received the message about a release of this Holdfast instance on that server. They
   * come after a delay, so a local caller that came back immediately would win every time.
   */
  heardByOthers(server: number): void {
    this.#wantedUntilMs = this.#session.runtime.monotonicMs() + this.pace.patienceMs;
    // The other processes first ask the lowest server at which they found this owner.
    this.firstServer = Math.min(this.firstServer ?? server, server);
    this.#lingerIfEmpty();
  }

  /** Whether other processes are about to try because of a release of this Holdfast instance. */
  get isWanted(): boolean {
    return this.#session.runtime.monotonicMs() < this.#wantedUntilMs;
  }

  /** Records that an attempt asks all servers in parallel. */
  asksAll(): void {
    this.#moved();
  }

  /**
   * The server that an attempt asks first; undefined to ask all in parallel. Also undefined if nothing has changed at
   * the first server for RECHECK_MS, because a leftover hold may block it.
   */
  get whereFirst(): number | undefined {
    return this.#session.runtime.monotonicMs() - this.#movedAtMs < RECHECK_MS ? this.firstServer : undefined;
  }

  /** Records whether an attempt won the first server. */
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

  /** Closes the line and its subscriptions. */
  close(): void {
    this.#linger?.cancel();
    this.#onEmpty(this);
    void this.subscribers.close();
  }
}

/**
 * A local queue: the callers of one Holdfast instance that want the same lock. Only the caller at the front makes
 * attempts, so that callers in one process do not split the votes.
 */

import { UnsupportedError } from "../core/errors.js";
import type { Timer } from "../core/runtime.js";
import type { Inbox } from "../core/store.js";
import { quorumOf } from "./decision.js";
import { type Pace, RECHECK_MS } from "./pace.js";
import type { QuorumParts, QuorumServer } from "./servers.js";

/** A caller in a line. */
export interface LineMember {
  /** Called when this caller is at the front. */
  advance(): void;
  /** Called when a hold of the lock has ended on this server. */
  released(server: number): void;
}

/** How long subscriptions are kept after the last waiter leaves, in ms. The next waiter on a busy lock reuses them. */
const LINGER_MS = 5_000;

const LEAST_CROWDING = 1;
const MOST_CROWDING = 64;
/**
 * `crowding` is multiplied by MORE when an attempt loses the first server, and by LESS when an attempt wins it. The
 * factors balance if about one in four attempts wins, so the number of attempts stays stable.
 */
const MORE = 1.4;
const LESS = 0.4;

/**
 * The local queue for one lock, and its subscriptions to the releases on each server. A message is only a hint: waiters
 * also poll.
 */
export class Line {
  readonly pace: Pace;
  readonly #quorum: QuorumParts;
  readonly #channel: string;
  readonly #onClosed: (line: Line) => void;
  readonly #members = new Set<LineMember>();
  /** The subscriptions by server. `unsupported` if the client can never subscribe there. */
  readonly #inboxes = new Map<number, Inbox | "opening" | "unsupported">();
  #isClosed = false;
  #front: LineMember | undefined;
  #linger: Timer | undefined;
  /**
   * The server that an attempt asks first while other processes want the lock too: the first server that reported
   * another owner. Processes that reach the same servers choose the same first server.
   */
  firstServer: number | undefined;
  /** After a release, attempts start at random moments within `crowding` times `Pace.winMs`, to spread them. */
  crowding: number = LEAST_CROWDING;
  #wantedUntilMs = Number.NEGATIVE_INFINITY;
  /** The last time that the lock was released at the first server or that an attempt asked all servers in parallel. */
  #movedAtMs = Number.NEGATIVE_INFINITY;
  /** The error from the last attempt. Set only while no majority of the servers can be reached. */
  failure: unknown;

  constructor(quorum: QuorumParts, channel: string, onClosed: (line: Line) => void) {
    this.#quorum = quorum;
    this.pace = quorum.pace;
    this.#channel = channel;
    this.#onClosed = onClosed;
  }

  /** Adds a caller. If the line was empty, calls its `advance` in the same turn. */
  join(member: LineMember): void {
    this.#linger?.cancel();
    this.#members.add(member);
    if (this.#front !== undefined) return;
    this.#front = member;
    member.advance();
  }

  /** Removes a caller, wherever it is in the line. A second call has no effect. */
  leave(member: LineMember): void {
    if (!this.#members.delete(member)) return;
    if (this.#front === member) {
      const [next] = this.#members;
      this.#front = next;
      next?.advance();
    }
    this.#lingerIfEmpty();
  }

  /**
   * Records that other processes were notified that this Holdfast instance released the lock on `server`. They
   * try after a delay, so a local caller that tried again immediately would win every time.
   */
  wantedByOthers(server: number): void {
    this.#wantedUntilMs = this.#nowMs() + this.pace.patienceMs;
    // The other processes first ask the server with the lowest index that reported this hold. Choose the same one.
    this.firstServer = Math.min(this.firstServer ?? server, server);
    this.#lingerIfEmpty();
  }

  /** Whether other processes are about to make attempts because this Holdfast instance released the lock. */
  get isWanted(): boolean {
    return this.#nowMs() < this.#wantedUntilMs;
  }

  /** Records that the lock was released at the first server, or that an attempt asks all servers in parallel. */
  moved(): void {
    this.#movedAtMs = this.#nowMs();
  }

  /**
   * The server that an attempt asks first; undefined to ask all in parallel. Also undefined if nothing has changed at
   * the first server for RECHECK_MS, because a leftover hold there may block the waiter.
   */
  get whereFirst(): number | undefined {
    return this.#nowMs() - this.#movedAtMs < RECHECK_MS ? this.firstServer : undefined;
  }

  /** Records whether an attempt won the first server. */
  passedFirst(isFirst: boolean): void {
    this.crowding = Math.min(MOST_CROWDING, Math.max(LEAST_CROWDING, this.crowding * (isFirst ? LESS : MORE)));
  }

  /** Whether the subscriptions on a majority of the servers are open. */
  get isSubscribed(): boolean {
    const { servers } = this.#quorum;
    return servers.filter(({ index }) => this.isSubscribedAt(index)).length >= quorumOf(servers.length);
  }

  /** Whether the subscription on this server is open. */
  isSubscribedAt(server: number): boolean {
    return typeof this.#inboxes.get(server) === "object";
  }

  /** Opens the missing subscriptions. Resolves when each is open or has failed; never rejects. */
  async subscribe(): Promise<void> {
    const missing = this.#quorum.servers.filter(({ index }) => !this.#inboxes.has(index));
    await Promise.all(missing.map((server) => this.#subscribeAt(server)));
  }

  /** Closes the line and its subscriptions. */
  close(): void {
    this.#isClosed = true;
    this.#linger?.cancel();
    this.#onClosed(this);
    for (const inbox of this.#inboxes.values()) if (typeof inbox === "object") void inbox.close();
    this.#inboxes.clear();
  }

  async #subscribeAt({ index, store }: QuorumServer): Promise<void> {
    this.#inboxes.set(index, "opening");
    try {
      const { commandTimeoutMs } = this.#quorum.session;
      const inbox = await store.inbox(this.#channel, () => this.#released(index), commandTimeoutMs);
      if (this.#isClosed) await inbox.close();
      else this.#inboxes.set(index, inbox);
    } catch (error) {
      if (error instanceof UnsupportedError) this.#inboxes.set(index, "unsupported");
      else this.#inboxes.delete(index);
    }
  }

  #released(server: number): void {
    if (server === this.firstServer) this.moved();
    this.#front?.released(server);
  }

  #lingerIfEmpty(): void {
    if (this.#members.size > 0) return;
    this.#linger?.cancel();
    this.#linger = this.#quorum.session.runtime.startTimer(() => this.close(), LINGER_MS, false);
  }

  #nowMs(): number {
    return this.#quorum.session.runtime.monotonicMs();
  }
}

/**
 * Releases everything that one attempt holds or may hold, on all servers. Runs when the attempt fails, or when its
 * lease is released.
 *
 * Servers that refused or did not reply get a release too. It is certain that a server holds nothing once it has
 * replied to the acquire and to a release that was sent after that reply. Until then, the release is repeated, but not
 * for longer than the requested lease. So a lost message delays other callers by at most the length of that lease.
 */

import { call } from "../core/call.js";
import { StoreError } from "../core/errors.js";
import type { Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import { redlockRelease } from "../generated/redlock.js";
import type { Ballot } from "./ballot.js";
import type { Answers, Failed, QuorumParts, QuorumServer } from "./servers.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;

/** The reply of one server to a release. */
interface Released {
  readonly outcome: "released" | "unheld";
}

/** Releases one attempt on all servers. At most one object per attempt. */
class QuorumCleanup {
  readonly #quorum: QuorumParts;
  readonly #session: Session;
  readonly #ballot: Ballot;
  /** Whether this Holdfast instance gives way to others after the release: true only if the attempt was granted. */
  readonly #givesWay: boolean;
  readonly #onOver: () => void;
  readonly #startedAtMs: number;
  /** For each server: `released` if any reply said so, else its last reply; if it never replied, its last error. */
  readonly #answers: (Released | Failed | undefined)[];
  readonly #settled: boolean[];
  /** For each server, the number of releases in flight. */
  readonly #underWay: number[];
  #listeners: (() => void)[] = [];
  #pauseMs = FIRST_PAUSE_MS;
  #pause: Timer | undefined;
  #round: Promise<void> | undefined;
  /** Whether a round has begun since this Holdfast instance began to close. That round is the last. */
  #isLast = false;
  #isOver = false;

  constructor(quorum: QuorumParts, ballot: Ballot, onOver: () => void) {
    const { session, servers } = quorum;
    this.#quorum = quorum;
    this.#session = session;
    this.#ballot = ballot;
    this.#givesWay = ballot.isElected;
    this.#onOver = onOver;
    this.#startedAtMs = session.runtime.monotonicMs();
    this.#answers = servers.map(() => undefined);
    this.#underWay = servers.map(() => 0);
    this.#settled = servers.map((server) => !ballot.isAsked(server));
    // Release a late grant immediately, not in the next round. If a release is in flight, `#send` repeats it if needed.
    ballot.abandon((server) => {
      if (this.#underWay[server.index] === 0) void this.#send(server, session.commandTimeoutMs);
    });
  }

  /** The answers by server; undefined where there is none yet. */
  get answers(): Answers<Released> {
    return this.#answers;
  }

  /**
   * Sends a release to every server that may still hold something. Joins the current round, if there is one.
   *
   * @returns a promise that resolves when all of these servers have replied or failed
   */
  round(timeoutMs: number): Promise<void> {
    this.#round ??= this.#askOpen(timeoutMs).finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #askOpen(timeoutMs: number): Promise<void> {
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#isLast ||= this.#session.isClosing;
    const open = this.#quorum.servers.filter(({ index }) => this.#settled[index] !== true);
    await Promise.all(open.map((server) => this.#send(server, timeoutMs)));
    this.#goOn();
  }

  /** Resolves when `isEnough` returns true for the answers, or when `rest` resolves. */
  until(isEnough: (answers: Answers<Released>) => boolean, rest: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (isEnough(this.#answers)) resolve();
      };
      this.#listeners.push(check);
      check();
      void rest.then(() => {
        this.#listeners = this.#listeners.filter((listener) => listener !== check);
        resolve();
      });
    });
  }

  /** Starts the next round immediately. Called after a reconnect, because servers that did not reply may reply now. */
  askNow(): void {
    if (!this.#isOver && this.#pause !== undefined) void this.round(this.#session.commandTimeoutMs);
  }

  /**
   * Runs a last round, unless one has already run since the close began. A second round would wait for another timeout
   * if a server did not reply.
   */
  async close(): Promise<void> {
    if (!this.#isLast || this.#round !== undefined) await this.round(this.#session.commandTimeoutMs);
    this.#end();
  }

  async #send(server: QuorumServer, timeoutMs: number): Promise<void> {
    const { index, store } = server;
    const { place, claim } = this.#ballot;
    const { name, channel } = place;
    const wasAccounted = this.#ballot.isAccounted(server);
    this.#underWay[index] = (this.#underWay[index] ?? 0) + 1;
    let mayHaveMissed = false;
    try {
      const reply = await call({ store, name }, redlockRelease, place, { owner: claim.owner, channel }, timeoutMs);
      const held = reply.outcome === "released";
      if (held && this.#givesWay) this.#quorum.giveWay(place, index, reply.listeners);
      // If an earlier release succeeded, the reply to a repeated one is "unheld". Keep "released".
      if (this.#answers[index]?.outcome !== "released") this.#answers[index] = { outcome: reply.outcome };
      const isAccounted = this.#ballot.isAccounted(server);
      // A successful release ran after the acquire, even if its reply was read first, so the server holds nothing now.
      this.#settled[index] ||= wasAccounted || (held && isAccounted);
      mayHaveMissed = isAccounted && this.#settled[index] !== true;
    } catch (error) {
      const before = this.#answers[index]?.outcome;
      if (before === undefined || before === "failed") this.#answers[index] = { outcome: "failed", error };
      // Do not retry after a permanent error, such as a key of another type. The lease ends on its own.
      this.#settled[index] ||= !(error instanceof StoreError) || !error.transient;
    }
    this.#underWay[index] = (this.#underWay[index] ?? 1) - 1;
    for (const listener of this.#listeners) listener();
    if (this.#settled.every(Boolean)) this.#end();
    // This is part of the round, so that `close` waits for it too.
    if (mayHaveMissed && this.#underWay[index] === 0) await this.#send(server, timeoutMs);
  }

  #goOn(): void {
    if (this.#isOver) return;
    const { runtime } = this.#session;
    const passedMs = runtime.monotonicMs() - this.#startedAtMs;
    // An extension may have requested a longer lease in the meantime.
    const { longestMs } = this.#ballot;
    if (passedMs >= longestMs) {
      this.#end();
      return;
    }
    const pauseMs = Math.min(this.#pauseMs, Math.max(1, longestMs - passedMs));
    this.#pause = runtime.startTimer(() => void this.round(this.#session.commandTimeoutMs), pauseMs, false);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pause?.cancel();
    this.#onOver();
  }
}

/** The number under which cleanups register with the client inbox. No claim has this number. */
const OCCUPIES = Number.MAX_SAFE_INTEGER;

/** All running cleanups of one Holdfast instance. `close` waits for them. */
export class QuorumCleanups implements Occupant {
  /** Cleanups are not waits: they continue while a closing Holdfast instance waits for its holders. */
  readonly waits = false;
  readonly #quorum: QuorumParts;
  readonly #running = new Map<Ballot, QuorumCleanup>();

  constructor(quorum: QuorumParts) {
    this.#quorum = quorum;
  }

  /**
   * Releases what an attempt holds, and retries in the background. A second call for the same attempt joins the first.
   *
   * @param timeoutMs  timeout for each reply, in ms
   * @param isEnough   whether the answers so far suffice; by default, waits for all servers
   * @returns the answers once they suffice, or once each server has replied or failed
   */
  async cleanUp(
    ballot: Ballot,
    timeoutMs: number,
    isEnough: (answers: Answers<Released>) => boolean = () => false,
  ): Promise<Answers<Released>> {
    const cleanup = this.#running.get(ballot) ?? this.#begin(ballot);
    await cleanup.until(isEnough, cleanup.round(timeoutMs));
    return cleanup.answers;
  }

  granted(): void {}

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    for (const cleanup of this.#running.values()) cleanup.askNow();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.values()].map((cleanup) => cleanup.close()));
  }

  #begin(ballot: Ballot): QuorumCleanup {
    const cleanup = new QuorumCleanup(this.#quorum, ballot, () => this.#over(ballot));
    this.#running.set(ballot, cleanup);
    this.#quorum.session.clientInbox.register(OCCUPIES, this);
    return cleanup;
  }

  #over(ballot: Ballot): void {
    this.#running.delete(ballot);
    if (this.#running.size === 0) this.#quorum.session.clientInbox.unregister(OCCUPIES, this);
  }
}

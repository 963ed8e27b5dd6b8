/**
 * Releases on all servers what one attempt has or may have, after it failed or when its lease is released.
 *
 * It also asks servers that refused or did not reply. A server is certain to hold nothing only after it has replied to
 * a release that was sent after its reply to the acquire. While that is missing, the release is repeated until the
 * requested lease would have ended. So in the worst case, a lost message costs that much time.
 */

import { StoreError } from "../core/errors.js";
import type { Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import type { Ballot } from "./ballot.js";
import { quorumOf } from "./decision.js";
import { type Answer, type QuorumServer, type RedlockPlace, releaseOn } from "./servers.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;

/** Called for each server on which a lease was released, with the number of connections that received the message. */
export type OnHeard = (place: RedlockPlace, server: number, listeners: number) => void;

/** Releases one attempt on all servers. At most one object per attempt. */
export class QuorumCleanup {
  readonly #session: Session;
  readonly #servers: readonly QuorumServer[];
  readonly #ballot: Ballot;
  readonly #onHeard: OnHeard;
  readonly #onOver: () => void;
  readonly #startedAtMs: number;
  /** By server: whether any reply said that it held; or the last error, if there is no reply. */
  readonly #answers: (Answer<boolean> | undefined)[];
  readonly #settled: boolean[];
  /** By server: the number of releases without a reply. */
  readonly #underWay: number[];
  #listeners: (() => void)[] = [];
  #pauseMs = FIRST_PAUSE_MS;
  #pause: Timer | undefined;
  #round: Promise<void> | undefined;
  /** Whether a round has begun since this Holdfast instance began to close. That round is the last. */
  #isLast = false;
  #isOver = false;

  constructor(
    session: Session,
    servers: readonly QuorumServer[],
    ballot: Ballot,
    onHeard: OnHeard,
    onOver: () => void,
  ) {
    this.#session = session;
    this.#servers = servers;
    this.#ballot = ballot;
    this.#onHeard = onHeard;
    this.#onOver = onOver;
    this.#startedAtMs = session.runtime.monotonicMs();
    this.#answers = servers.map(() => undefined);
    this.#underWay = servers.map(() => 0);
    this.#settled = servers.map((server) => !ballot.isAsked(server));
    // Release a late grant immediately, not in the next round. If a release is in flight, its reply decides.
    ballot.abandon((server) => {
      if (this.#underWay[server.index] === 0) void this.#send(server, session.commandTimeoutMs);
    });
  }

  /** The answers by server; undefined where there is none yet. */
  get answers(): readonly (Answer<boolean> | undefined)[] {
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
    const open = this.#servers.filter(({ index }) => this.#settled[index] !== true);
    await Promise.all(open.map((server) => this.#send(server, timeoutMs)));
    this.#goOn();
  }

  /** Resolves when `isEnough` returns true for the answers, or when `rest` resolves. */
  until(isEnough: (answers: readonly (Answer<boolean> | undefined)[]) => boolean, rest: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (isEnough(this.#answers)) resolve();
      };
      this.#listeners.push(look);
      look();
      void rest.then(() => {
        this.#listeners = this.#listeners.filter((listener) => listener !== look);
        resolve();
      });
    });
  }

  /** Starts the next round now, because a connection is back and missing replies may be available. */
  askNow(): void {
    if (!this.#isOver && this.#pause !== undefined) void this.round(this.#session.commandTimeoutMs);
  }

  /**
   * Runs a last round, unless one has already run since the close began, because an unresponsive server would cost
   * another timeout.
   */
  async close(): Promise<void> {
    if (!this.#isLast || this.#round !== undefined) await this.round(this.#session.commandTimeoutMs);
    this.#end();
  }

  async #send(server: QuorumServer, timeoutMs: number): Promise<void> {
    const { index } = server;
    const { place, claim } = this.#ballot;
    const wasAccounted = this.#ballot.isAccounted(server);
    this.#underWay[index] = (this.#underWay[index] ?? 0) + 1;
    let mayHaveMissed = false;
    try {
      const listeners = await releaseOn(server, place, { owner: claim.owner, channel: place.channel }, timeoutMs);
      const held = listeners !== undefined;
      if (held) this.#onHeard(place, index, listeners);
      const before = this.#answers[index];
      // A second reply says "not held" if the first release succeeded.
      const hasHeld = before !== undefined && "reply" in before && before.reply;
      this.#answers[index] = { reply: held || hasHeld };
      const isAccounted = this.#ballot.isAccounted(server);
      // A successful release ran after the acquire, no matter which reply is read first.
      this.#settled[index] ||= wasAccounted || (held && isAccounted);
      mayHaveMissed = isAccounted && this.#settled[index] !== true;
    } catch (error) {
      const before = this.#answers[index];
      if (before === undefined || "error" in before) this.#answers[index] = { error };
      // The error is permanent, for example a key of another type. The lease ends on its own.
      this.#settled[index] ||= !(error instanceof StoreError) || !error.transient;
    }
    this.#underWay[index] = (this.#underWay[index] ?? 1) - 1;
    for (const listener of this.#listeners) listener();
    if (this.#settled.every(Boolean)) this.#end();
    // Part of the round, so that `close` waits for it too.
    if (mayHaveMissed && this.#underWay[index] === 0) await this.#send(server, timeoutMs);
  }

  #goOn(): void {
    if (this.#isOver) return;
    const { runtime } = this.#session;
    const passedMs = runtime.monotonicMs() - this.#startedAtMs;
    // An extension may have requested a longer lease since.
    const { longestMs } = this.#ballot;
    if (passedMs >= longestMs) {
      this.#end();
      return;
    }
    this.#pause?.cancel();
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
  readonly #session: Session;
  readonly #servers: readonly QuorumServer[];
  readonly #onHeard: OnHeard;
  readonly #running = new Map<Ballot, QuorumCleanup>();

  constructor(session: Session, servers: readonly QuorumServer[], onHeard: OnHeard) {
    this.#session = session;
    this.#servers = servers;
    this.#onHeard = onHeard;
  }

  /**
   * Releases what an attempt has, and retries in the background. A second call for the same attempt joins the first.
   *
   * @param timeoutMs  longest wait for each reply, in ms
   * @param isEnough   whether the answers so far decide; by default, waits for all servers
   * @returns the answers once they decide, or once each server has replied or failed
   */
  async cleanUp(
    ballot: Ballot,
    timeoutMs: number,
    isEnough: (answers: readonly (Answer<boolean> | undefined)[]) => boolean = () => false,
  ): Promise<readonly (Answer<boolean> | undefined)[]> {
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
    // Only the release of a granted lease makes this Holdfast instance give way to others; that of a failed attempt
    // does not.
    const onHeard = ballot.isElected ? this.#onHeard : () => {};
    const cleanup = new QuorumCleanup(this.#session, this.#servers, ballot, onHeard, () => this.#over(ballot));
    this.#running.set(ballot, cleanup);
    this.#session.clientInbox.register(OCCUPIES, this);
    return cleanup;
  }

  #over(ballot: Ballot): void {
    this.#running.delete(ballot);
    if (this.#running.size === 0) this.#session.clientInbox.unregister(OCCUPIES, this);
  }
}

/** Whether a majority has replied. */
export function isAnswered(answers: readonly (Answer<boolean> | undefined)[]): boolean {
  const said = answers.filter((answer) => answer !== undefined && "reply" in answer);
  return said.length >= quorumOf(answers.length);
}

/**
 * Giving back, on all servers, what one attempt has or may have: after it failed, or when its lease is released.
 *
 * All of them are asked, also those that said no or nothing: what they have done is known only when a release was
 * answered that was sent after the answer to the acquire. Where that answer is missing, the release is sent again until the
 * lease that the request could have begun would be over. The worst case of any lost message is to wait for that.
 */

import { StoreError } from "../core/errors.js";
import type { Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import type { Ballot } from "./ballot.js";
import { quorumOf } from "./decision.js";
import { type Answer, type QuorumServer, type RedlockPlace, releaseOn } from "./servers.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;

/** Told of each server on which a lease was given back: so many connections listened there. */
export type OnHeard = (place: RedlockPlace, server: number, listeners: number) => void;

/** See the file header. One for each attempt, at most. */
export class QuorumCleanup {
  readonly #session: Session;
  readonly #servers: readonly QuorumServer[];
  readonly #ballot: Ballot;
  readonly #onHeard: OnHeard;
  readonly #onOver: () => void;
  readonly #startedAtMs: number;
  /** By server: whether it held, by the first answer that says so; or the last failure. */
  readonly #answers: (Answer<boolean> | undefined)[];
  readonly #settled: boolean[];
  /** By server: how many releases have no answer yet. */
  readonly #underWay: number[];
  #listeners: (() => void)[] = [];
  #pauseMs = FIRST_PAUSE_MS;
  #pause: Timer | undefined;
  #round: Promise<void> | undefined;
  /** Whether a round has begun since this Holdfast began to close: it is the last one. */
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
    // What comes late is given back at once, not at the next round; or was, by a release that is under way.
    ballot.abandon((server) => {
      if (this.#underWay[server.index] === 0) void this.#send(server, session.commandTimeoutMs);
    });
  }

  /** By server; undefined where there is no answer yet. */
  get answers(): readonly (Answer<boolean> | undefined)[] {
    return this.#answers;
  }

  /**
   * Asks every server that is not known to have nothing left; joins in, if that is under way.
   *
   * @returns when all of them have answered or failed
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

  /** Resolves when `isEnough` is true of the answers, or when `rest` ends. */
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

  /** The connection to a server is back: what is missing may be had at once. */
  askNow(): void {
    if (!this.#isOver && this.#pause !== undefined) void this.round(this.#session.commandTimeoutMs);
  }

  /** Asks once more, unless that is under way or was done since the close began: who is silent would cost a deadline again. */
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
      // A second answer is "not held", because the first one has released it.
      const hasHeld = before !== undefined && "reply" in before && before.reply;
      this.#answers[index] = { reply: held || hasHeld };
      const isAccounted = this.#ballot.isAccounted(server);
      // What has released it came after what took it, whichever answer is read first.
      this.#settled[index] ||= wasAccounted || (held && isAccounted);
      mayHaveMissed = isAccounted && this.#settled[index] !== true;
    } catch (error) {
      const before = this.#answers[index];
      if (before === undefined || "error" in before) this.#answers[index] = { error };
      // It will go on refusing, as with a key of another type: the rest is left to the lease.
      this.#settled[index] ||= !(error instanceof StoreError) || !error.transient;
    }
    this.#underWay[index] = (this.#underWay[index] ?? 1) - 1;
    for (const listener of this.#listeners) listener();
    if (this.#settled.every(Boolean)) this.#end();
    // A part of the round, so that whoever closes waits for it too.
    if (mayHaveMissed && this.#underWay[index] === 0) await this.#send(server, timeoutMs);
  }

  #goOn(): void {
    if (this.#isOver) return;
    const { runtime } = this.#session;
    const passedMs = runtime.monotonicMs() - this.#startedAtMs;
    // As they may have been asked for by an extension since.
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

/** No claim has this number. */
const OCCUPIES = Number.MAX_SAFE_INTEGER;

/** All that is being given back in one Holdfast: `close` waits for it. */
export class QuorumCleanups implements Occupant {
  /** It goes on by itself while a Holdfast that closes waits for others. */
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
   * Gives back what that attempt has, and keeps at it in the background; a second call joins in.
   *
   * @param isEnough  whether the answers so far decide; all of them by default
   * @returns the answers, when they decide or each server has answered or failed
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
    // Whom an attempt that failed has stood in the way of is no business of the next one.
    const onHeard = ballot.isElected ? this.#onHeard : () => {};
    const cleanup = new QuorumCleanup(this.#session, this.#servers, ballot, onHeard, () => this.#over(ballot));
    this.#running.set(ballot, cleanup);
    this.#session.mailbox.register(OCCUPIES, this);
    return cleanup;
  }

  #over(ballot: Ballot): void {
    this.#running.delete(ballot);
    if (this.#running.size === 0) this.#session.mailbox.unregister(OCCUPIES, this);
  }
}

/** Whether a majority has said whether it held. */
export function isAnswered(answers: readonly (Answer<boolean> | undefined)[]): boolean {
  const said = answers.filter((answer) => answer !== undefined && "reply" in answer);
  return said.length >= quorumOf(answers.length);
}

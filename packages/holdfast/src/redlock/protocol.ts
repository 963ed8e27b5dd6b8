/** The protocol of a lock on a quorum. Each method sends a request to every server and evaluates the replies. */
import type { ServerAnswer } from "../core/error-messages.js";
import { StoreError, UnsupportedError } from "../core/errors.js";
import type { Claim, LockProtocol, NotHeld, State } from "../core/protocol.js";
import { parseOwner } from "../core/protocol.js";
import type { Ballot } from "./ballot.js";
import { quorumOf } from "./decision.js";
import { type Memories, toldIn } from "./memories.js";
import { isAnswered, type QuorumCleanups } from "./quorum-cleanup.js";
import {
  type Answers,
  askAll,
  count,
  extendOn,
  failed,
  lookAt,
  type QuorumServer,
  quorumError,
  type RedlockPlace,
  releaseOn,
  type ServerView,
} from "./servers.js";

/** A claim of one attempt, with that attempt. */
export interface BallotClaim extends Claim {
  readonly ballot: Ballot;
}

/** What the protocol needs. */
export interface RedlockFacts {
  readonly servers: readonly QuorumServer[];
  readonly quorumCleanups: QuorumCleanups;
  readonly memories: Memories;
  readonly place: RedlockPlace;
  /** Prefix of inbox channels: the channel of a client is this plus its client id. */
  readonly inbox: string;
  /**
   * If the lock is free, acquires and releases it, so that its numbers rise and waiters are notified. Never rejects.
   */
  readonly touch: () => Promise<void>;
}

/**
 * Creates the protocol of the lock at `place`. It cannot acquire, because every attempt needs a new claim; waiter.ts
 * acquires instead.
 */
export function redlockProtocol({
  servers,
  quorumCleanups,
  memories,
  place,
  inbox,
  touch,
}: RedlockFacts): LockProtocol {
  const { name } = place;
  const majority = quorumOf(servers.length);
  const look = (timeoutMs: number): Promise<Answers<ServerView>> =>
    // Wait for all servers that reply in time, because the servers that differ from the rest are of interest here.
    askAll(
      servers,
      (server) => lookAt(server, place, timeoutMs),
      () => false,
    );

  /** Returns the views of all servers that replied. @throws QuorumError  no reply from a majority */
  const seen = async (timeoutMs: number): Promise<ServerView[]> => {
    const answers = await look(timeoutMs);
    if (count(answers) < majority) throw quorumError(name, described(answers));
    return views(answers);
  };

  /** When a majority no longer holds for the claim: whether another owner may have been granted the lock since. */
  const whyLost = async (claim: Claim, token: number, timeoutMs: number): Promise<NotHeld> => {
    const answers = await look(timeoutMs);
    const { votes } = ballotOf(claim);
    const untouched = answers.filter((answer, index) => {
      if (answer === undefined || "error" in answer) return false;
      const { token: number, owner } = answer.reply;
      const vote = votes[index];
      // A straggler may have granted a higher number to this same claim.
      const own = vote?.outcome === "granted" ? Math.max(token, vote.token) : token;
      return number > 0 && number <= own && (owner === undefined || owner === claim.owner);
    });
    // Any later grant has written its own, higher token to a majority.
    return untouched.length >= majority ? "unclaimed" : "claimed";
  };

  return {
    kind: "redlock",
    name,
    key: place.lock,
    exported: undefined,

    acquire: () => Promise.reject(unsupported(name, "It cannot be a part of another lock.")),

    async extend({ claim, token }, leaseMs, timeoutMs) {
      const { owner } = claim;
      const ballot = ballotOf(claim);
      const isLonger = leaseMs > claim.leaseMs;
      const failure = isLonger ? await memories.told(name, leaseMs, timeoutMs) : undefined;
      if (failure !== undefined) throw failure;
      const { standings } = ballot;
      // A server that was not informed of the longer lease in time is not extended. It keeps its current lease.
      const wasTold = servers.map((server) => !isLonger || toldIn(server, leaseMs) !== undefined);
      ballot.asked(leaseMs);
      const answers = await askAll(
        servers,
        (server) =>
          wasTold[server.index] === true
            ? extendOn(server, place, { owner, standing: standings[server.index] ?? 0, leaseMs }, timeoutMs)
            : Promise.reject(untold(name)),
        (soFar) => decides(soFar, majority),
      );
      if (count(answers, (isExtended) => isExtended) >= majority) return "extended";
      if (isLost(answers, majority)) return whyLost(claim, token, timeoutMs);
      throw quorumError(name, described(answers));
    },

    async release({ claim }, timeoutMs) {
      const ballot = ballotOf(claim);
      const answers = await quorumCleanups.cleanUp(ballot, timeoutMs, (soFar) => decides(soFar, majority));
      if (count(answers, (wasHeld) => wasHeld) >= majority) return "released";
      // A release is sent only while the lease is valid, so the lock was force-released or the servers have lost it.
      if (isLost(answers, majority)) return "claimed";
      throw quorumError(name, described(answers));
    },

    async leave(claim, timeoutMs) {
      const answers = await quorumCleanups.cleanUp(ballotOf(claim), timeoutMs, isAnswered);
      if (!isAnswered(answers)) throw quorumError(name, described(answers));
    },

    adopt: () => Promise.reject(unsupported(name, "Its leases stay with the Holdfast that acquired them.")),

    async forceRelease({ owner, token }, timeoutMs) {
      const [holder] = stateOf(await seen(timeoutMs), majority).holders;
      const isMeant =
        holder !== undefined && holder.owner === (owner ?? holder.owner) && holder.token === (token ?? holder.token);
      if (!isMeant) return false;
      // Notify the holder itself. The touch below notifies the waiters.
      const channel = inbox + (parseOwner(holder.owner)?.clientId ?? "");
      const answers = await askAll(
        servers,
        async (server) => (await releaseOn(server, place, { owner: holder.owner, channel }, timeoutMs)) !== undefined,
        () => false,
      );
      if (count(answers) < majority) throw quorumError(name, described(answers));
      if (count(answers, (wasHeld) => wasHeld) === 0) return false;
      // Raises the numbers. If they were unchanged, the holder would conclude that no other owner was granted.
      await touch();
      return true;
    },

    async inspect(_owner, timeoutMs) {
      return stateOf(await seen(timeoutMs), majority);
    },
  };
}

/** Returns the attempt of a claim. Every claim passed to this protocol was created by an attempt. */
function ballotOf(claim: Claim): Ballot {
  return (claim as BallotClaim).ballot;
}

function untold(name: string): StoreError {
  const cause = "it was not told how long the lease is to be, so it was not asked to extend it";
  return new StoreError(name, { mayHaveRun: false, transient: true, cause });
}

function unsupported(name: string, why: string): UnsupportedError {
  return new UnsupportedError(name, `This is not possible with a lock on several independent servers. ${why}`);
}

/** Whether a majority agreed, or can no longer agree. */
function decides(answers: Answers<boolean>, majority: number): boolean {
  return count(answers, (isYes) => isYes) >= majority || isLost(answers, majority);
}

function isLost(answers: Answers<boolean>, majority: number): boolean {
  return count(answers, (isYes) => !isYes) > answers.length - majority;
}

function described(answers: Answers<boolean | ServerView>): ServerAnswer[] {
  return answers.map((answer, server) => {
    if (answer === undefined) return { server, answer: "none", leaseLeftMs: undefined, error: undefined };
    if ("error" in answer) return failed(server, answer.error);
    return { server, answer: answer.reply === false ? "not-held" : "done", leaseLeftMs: undefined, error: undefined };
  });
}

function views(answers: Answers<ServerView>): ServerView[] {
  return answers.flatMap((answer) => (answer !== undefined && "reply" in answer ? [answer.reply] : []));
}

/** The holder is the owner that a majority reports. A grant by fewer servers is an attempt in progress. */
function stateOf(seen: readonly ServerView[], majority: number): State {
  const highest = Math.max(...seen.map(({ token }) => token));
  const free: State = {
    holders: [],
    token: highest > 0 ? highest : undefined,
    waiterCount: 0,
    waiters: [],
    ahead: undefined,
  };
  const owners = seen.map(({ owner }) => owner);
  const owner = owners.find((one) => one !== undefined && owners.filter((other) => other === one).length >= majority);
  if (owner === undefined) return free;
  const its = seen.filter((view) => view.owner === owner);
  const token = mostFrequent(its.map((view) => view.token));
  // The lease ends when so many servers' leases have ended that no majority is left.
  const ends = its.map(({ leaseLeftMs }) => leaseLeftMs).toSorted((a, b) => b - a);
  return { ...free, holders: [{ owner, token, leaseLeftMs: ends[majority - 1] ?? 0, isUntimed: true }], token };
}

/** The token is the most frequent number, because a majority has it. A straggler may have another number. */
function mostFrequent(numbers: readonly number[]): number {
  const [first = 0, ...rest] = numbers;
  const times = (number: number): number => numbers.filter((other) => other === number).length;
  return rest.reduce((best, number) => (times(number) > times(best) ? number : best), first);
}

/** The protocol of a lock on a quorum: each one request to every server, and what a majority of them answers. */
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

/** A claim that was made for one attempt, and what is known of it. */
export interface BallotClaim extends Claim {
  readonly ballot: Ballot;
}

/** What the protocol needs to know. */
export interface RedlockFacts {
  readonly servers: readonly QuorumServer[];
  readonly quorumCleanups: QuorumCleanups;
  readonly memories: Memories;
  readonly place: RedlockPlace;
  /** What a client id is appended to for its channel. */
  readonly inbox: string;
  /** Takes the lock and gives it back, if it is free: its numbers rise, and those who wait are told. Never rejects. */
  readonly touch: () => Promise<void>;
}

/** The protocol of the lock at `place`. Attempts are not among them: a retry is never the same claim again (waiter.ts). */
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
    // Those that differ from the rest are the reason to look, so all who answer in time are heard.
    askAll(
      servers,
      (server) => lookAt(server, place, timeoutMs),
      () => false,
    );

  /** What a majority says, or the error that there is none. @throws QuorumError */
  const seen = async (timeoutMs: number): Promise<ServerView[]> => {
    const answers = await look(timeoutMs);
    if (count(answers) < majority) throw quorumError(name, described(answers));
    return views(answers);
  };

  /** Whether somebody else may have been granted since, when a majority does not hold for the claim any more. */
  const whyLost = async (claim: Claim, token: number, timeoutMs: number): Promise<NotHeld> => {
    const answers = await look(timeoutMs);
    const { votes } = ballotOf(claim);
    const untouched = answers.filter((answer, index) => {
      if (answer === undefined || "error" in answer) return false;
      const { token: number, owner } = answer.reply;
      const vote = votes[index];
      // A straggler may have granted this very claim a higher number.
      const own = vote?.outcome === "granted" ? Math.max(token, vote.token) : token;
      return number > 0 && number <= own && (owner === undefined || owner === claim.owner);
    });
    // Whoever was granted since has written its own, higher token to a majority.
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
      // Of a server that has not been told yet the others would learn too late how long it is. It goes on holding.
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
      // It is given back in time only, so somebody has taken it away, or the servers have forgotten it.
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
      // To the holder itself; those who wait hear of the touch.
      const channel = inbox + (parseOwner(holder.owner)?.clientId ?? "");
      const answers = await askAll(
        servers,
        async (server) => (await releaseOn(server, place, { owner: holder.owner, channel }, timeoutMs)) !== undefined,
        () => false,
      );
      if (count(answers) < majority) throw quorumError(name, described(answers));
      if (count(answers, (wasHeld) => wasHeld) === 0) return false;
      // So that its holder does not find the numbers where they were, and take it for an end that harmed nobody.
      await touch();
      return true;
    },

    async inspect(_owner, timeoutMs) {
      return stateOf(await seen(timeoutMs), majority);
    },
  };
}

/** The attempt that a claim was made for; every claim that this protocol are asked about was made by an attempt. */
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

/** Whether a majority said yes, or so many said no that none can. */
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

/** Whoever a majority says has it; what only some servers have granted is an attempt under way. */
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
  // When so many have ended that no majority is left.
  const ends = its.map(({ leaseLeftMs }) => leaseLeftMs).toSorted((a, b) => b - a);
  return { ...free, holders: [{ owner, token, leaseLeftMs: ends[majority - 1] ?? 0, isUntimed: true }], token };
}

/** A majority stands at the token; a straggler may stand elsewhere. */
function mostFrequent(numbers: readonly number[]): number {
  const [first = 0, ...rest] = numbers;
  const times = (number: number): number => numbers.filter((other) => other === number).length;
  return rest.reduce((best, number) => (times(number) > times(best) ? number : best), first);
}

/** The protocol of a lock on a quorum. Each method sends a request to every server and evaluates the replies. */
import { call } from "../core/call.js";
import { UnsupportedError } from "../core/errors.js";
import type { Claim, LockProtocol, NotHeld, State } from "../core/protocol.js";
import { parseOwner } from "../core/protocol.js";
import { redlockExtend, redlockInspect, redlockRelease } from "../generated/redlock.js";
import type { Ballot } from "./ballot.js";
import { quorumOf, tally, UNDECIDED } from "./decision.js";
import { informedRun } from "./memories.js";
import type { Quorum } from "./quorum.js";
import { type Answers, askAll, count, failure, isAnswered, quorumError, type RedlockPlace } from "./servers.js";

/** How long an inspection waits before it reads an undecided lock again, in ms. Most attempts are over by then. */
const AGAIN_MS = 100;

/** The claim of an attempt, with the attempt itself. */
export interface BallotClaim extends Claim {
  readonly ballot: Ballot;
}

/** The state of a lock on one server. */
interface ServerView {
  readonly outcome: "read";
  /** The server's number for this lock; 0 if there is none. */
  readonly token: number;
  readonly owner: string | undefined;
  readonly leaseLeftMs: number;
}

/**
 * Creates the protocol of the lock at `place`. It cannot acquire, because every attempt needs a new claim; waiter.ts
 * acquires instead.
 */
export function redlockProtocol(quorum: Quorum, place: RedlockPlace): LockProtocol {
  const { session, servers, quorumCleanups, memories } = quorum;
  const { name } = place;
  const majority = quorumOf(servers.length);

  /**
   * Waits for all servers that reply in time, because an inspection must also show servers that differ from the
   * majority. Servers that failed in `before` are not asked again.
   */
  const inspectAll = (timeoutMs: number, before: Answers<ServerView> = []): Promise<Answers<ServerView>> =>
    askAll(servers, async ({ index, store }) => {
      const known = before[index];
      if (known?.outcome === "failed") return known;
      const reply = await call({ store, name }, redlockInspect, place, {}, timeoutMs);
      const owner = reply.outcome === "held" ? reply.owner[0] : undefined;
      return { outcome: "read", token: reply.token, owner, leaseLeftMs: reply.leftMs < 0 ? Infinity : reply.leftMs };
    });

  /**
   * Returns the state that a majority reports.
   *
   * @throws QuorumError  no reply from a majority, or the missing replies could change whether the lock is held
   */
  const readState = async (timeoutMs: number): Promise<State> => {
    let answers = await inspectAll(timeoutMs);
    if (!isAnswered(answers)) throw quorumError(name, answers);
    if (isUndecided(answers)) {
      // The servers may disagree because an attempt is in progress. It will be over soon, so read again.
      await new Promise<void>((resolve) => void session.runtime.startTimer(resolve, AGAIN_MS, true));
      const first = answers;
      const again = await inspectAll(timeoutMs, first);
      answers = again.map((answer, index) => (answer?.outcome === "read" ? answer : first[index]));
    }
    if (isUndecided(answers)) throw quorumError(name, answers.map(asVote), { why: UNDECIDED, mayHaveRun: false });
    return stateOf(
      answers.filter((answer) => answer?.outcome === "read"),
      majority,
    );
  };

  /** Returns whether another owner may have been granted the lock since a majority stopped holding it for the claim. */
  const whyLost = async (claim: Claim, token: number, timeoutMs: number): Promise<NotHeld> => {
    const answers = await inspectAll(timeoutMs);
    const { votes } = ballotOf(claim);
    const untouched = answers.filter((answer, index) => {
      if (answer?.outcome !== "read") return false;
      const { token: number, owner } = answer;
      const vote = votes[index];
      // A straggler may have granted the lock to this same claim with a higher number.
      const own = vote?.outcome === "granted" ? Math.max(token, vote.token) : token;
      return number > 0 && number <= own && (owner === undefined || owner === claim.owner);
    });
    // Any later grant has written a higher token to a majority, so an untouched majority rules out such a grant.
    return untouched.length >= majority ? "unclaimed" : "claimed";
  };

  return {
    kind: "redlock",
    name,
    key: place.lock,
    exported: undefined,

    acquire: () => Promise.reject(unsupported(name, "It cannot be a member of another lock.")),

    async extend({ claim, token }, leaseMs, timeoutMs) {
      const { owner } = claim;
      const ballot = ballotOf(claim);
      const isLonger = leaseMs > claim.leaseMs;
      const unmet = isLonger ? await memories.inform(name, leaseMs, timeoutMs) : undefined;
      if (unmet !== undefined) throw unmet;
      ballot.requested(leaseMs);
      const answers = await askAll(
        servers,
        async (server) => {
          // Do not ask a server that was not informed of the longer lease in time. It keeps its current lease.
          if (isLonger && informedRun(server, leaseMs) === undefined) {
            const cause = "it did not learn the new lease length in time, so it was not asked to extend the lease";
            return failure(name, { mayHaveRun: false, transient: true, cause });
          }
          const args = { owner, standing: ballot.standings[server.index] ?? 0, leaseMs };
          return call({ store: server.store, name }, redlockExtend, place, args, timeoutMs);
        },
        isDecided,
      );
      const held = heldByMajority(answers);
      if (held === "granted") return "extended";
      if (held === "refused") return whyLost(claim, token, timeoutMs);
      throw quorumError(name, answers);
    },

    async release({ claim }, timeoutMs) {
      const answers = await quorumCleanups.cleanUp(ballotOf(claim), timeoutMs, isDecided);
      const held = heldByMajority(answers);
      if (held === "granted") return "released";
      // A release is sent only while the lease is valid, so the lock was force-released or the servers have lost it.
      if (held === "refused") return "claimed";
      throw quorumError(name, answers);
    },

    async leave(claim, timeoutMs) {
      const answers = await quorumCleanups.cleanUp(ballotOf(claim), timeoutMs, isAnswered);
      if (!isAnswered(answers)) throw quorumError(name, answers);
    },

    adopt: () => Promise.reject(unsupported(name, "Its leases stay with the Holdfast that acquired them.")),

    async forceRelease({ owner, token }, timeoutMs) {
      const [holder] = (await readState(timeoutMs)).holders;
      const isMeant =
        holder !== undefined && holder.owner === (owner ?? holder.owner) && holder.token === (token ?? holder.token);
      if (!isMeant) return false;
      // Notify the holder itself. The touch below notifies the waiters.
      const channel = session.inboxPrefix + (parseOwner(holder.owner)?.clientId ?? "");
      const answers = await askAll(servers, ({ store }) =>
        call({ store, name }, redlockRelease, place, { owner: holder.owner, channel }, timeoutMs),
      );
      if (!isAnswered(answers)) throw quorumError(name, answers);
      if (count(answers, "released") === 0) return false;
      // Raises the numbers. If they were unchanged, the holder would conclude that no other owner was granted the lock.
      await quorum.touch(place);
      return true;
    },

    inspect: (_owner, timeoutMs) => readState(timeoutMs),
  };
}

/** Returns the attempt of a claim. Every claim passed to this protocol is a BallotClaim from waiter.ts. */
function ballotOf(claim: Claim): Ballot {
  return (claim as BallotClaim).ballot;
}

function unsupported(name: string, why: string): UnsupportedError {
  return new UnsupportedError(name, `This is not possible with a lock on several independent servers. ${why}`);
}

/**
 * Whether a majority still held the lock for the claim when an extension or a release ran: "granted" if it did,
 * "refused" if it cannot have, "wait" if that depends on missing replies.
 */
function heldByMajority(answers: Answers<{ readonly outcome: string }>): "granted" | "wait" | "refused" {
  const unheld = count(answers, "unheld");
  const held = count(answers) - unheld;
  return tally(held, answers.length - held - unheld, answers.length);
}

function isDecided(answers: Answers<{ readonly outcome: string }>): boolean {
  return heldByMajority(answers) !== "wait";
}

/** Whether no owner has a majority yet, but the missing replies could still give an owner a majority. */
function isUndecided(answers: Answers<ServerView>): boolean {
  const owners = answers.flatMap((answer) => (answer?.outcome === "read" ? [answer.owner] : []));
  const votes = owners.map((owner) => (owner === undefined ? 0 : owners.filter((other) => other === owner).length));
  return tally(Math.max(0, ...votes), answers.length - owners.length, answers.length) === "wait";
}

/** Converts the state on a server to the form that error reports use. */
function asVote(answer: Answers<ServerView>[number]): Answers<{ outcome: string; restMs?: number }>[number] {
  if (answer?.outcome !== "read") return answer;
  return answer.owner === undefined ? { outcome: "unheld" } : { outcome: "held", restMs: answer.leaseLeftMs };
}

/**
 * Returns the state of the lock. The holder is the owner that a majority reports; a grant by fewer servers is an
 * attempt in progress.
 */
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
  // The lease ends when fewer than a majority of the servers still hold it.
  const ends = its.map(({ leaseLeftMs }) => leaseLeftMs).toSorted((a, b) => b - a);
  const holders = [{ owner, token, leaseLeftMs: ends[majority - 1] ?? 0, isUntimed: true as const }];
  return { ...free, holders, token, votes: { holding: its.length, answered: seen.length } };
}

/**
 * Returns the most frequent number. It is the token, because a majority has it. A straggler may have another number.
 */
function mostFrequent(numbers: readonly number[]): number {
  const [first = 0, ...rest] = numbers;
  const times = (number: number): number => numbers.filter((other) => other === number).length;
  return rest.reduce((best, number) => (times(number) > times(best) ? number : best), first);
}

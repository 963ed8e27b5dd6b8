/** The independent servers of a quorum, their answers to a request, and the error for too few answers. */
import type { ServerAnswer, StoreFailure } from "../core/error-messages.js";
import { QuorumError, StoreError } from "../core/errors.js";
import type { Guard } from "../core/guard.js";
import type { Session } from "../core/session.js";
import type { Store } from "../core/store.js";
import { quorumOf } from "./decision.js";
import type { Pace } from "./pace.js";

/** One server of a quorum. */
export interface QuorumServer {
  /** Its index in the list of servers, from 0. */
  readonly index: number;
  readonly store: Store;
  /** Checks whether locks may be acquired on the server. */
  readonly guard: Guard;
}

/** The name, keys and channel of a lock, which are the same on each server. */
export interface RedlockPlace {
  readonly name: string;
  readonly lock: string;
  readonly fence: string;
  /** The channel to which its waiters subscribe. */
  readonly channel: string;
}

/** The parts of a quorum that its lines and cleanups use. */
export interface QuorumParts {
  readonly session: Session;
  readonly servers: readonly QuorumServer[];
  readonly pace: Pace;
  /** See `Quorum.giveWay`. */
  giveWay(place: RedlockPlace, server: number, listeners: number): void;
}

/** A failed request to one server. */
export interface Failed {
  readonly outcome: "failed";
  readonly error: unknown;
}

/** The answer of each server to one request, in the order of the servers; undefined where there is none yet. */
export type Answers<Reply> = readonly (Reply | Failed | undefined)[];

/**
 * Sends a request to all servers in parallel.
 *
 * @param isEnough  whether the answers so far suffice. If true, `askAll` does not wait for the other requests, but lets them run
 * @returns the answers as soon as they suffice; all answers if they never do
 */
export function askAll<Reply>(
  servers: readonly QuorumServer[],
  send: (server: QuorumServer) => Promise<Reply | Failed>,
  isEnough: (answers: Answers<Reply>) => boolean = () => false,
): Promise<Answers<Reply>> {
  return new Promise((resolve) => {
    const answers: (Reply | Failed | undefined)[] = servers.map(() => undefined);
    let missing = servers.length;
    for (const server of servers) {
      const settle = (answer: Reply | Failed): void => {
        answers[server.index] = answer;
        missing -= 1;
        if (missing === 0 || isEnough(answers)) resolve([...answers]);
      };
      send(server).then(settle, (error: unknown) => settle({ outcome: "failed", error }));
    }
  });
}

/** Returns the number of servers that replied `outcome`. By default, counts all replies. */
export function count(answers: Answers<{ readonly outcome: string }>, outcome?: string): number {
  const isCounted = (said: string | undefined): boolean =>
    said === outcome || (outcome === undefined && said !== "failed");
  return answers.filter((answer) => answer !== undefined && isCounted(answer.outcome)).length;
}

/** Whether a majority has replied. */
export function isAnswered(answers: Answers<{ readonly outcome: string }>): boolean {
  return count(answers) >= quorumOf(answers.length);
}

/** Whether a failed request may have run on the server. */
export function mayHaveRun(error: unknown): boolean {
  return !(error instanceof StoreError) || error.mayHaveRun;
}

/** Creates the answer for a server whose reply does not count, or that was not asked. */
export function failure(lockName: string, facts: StoreFailure): Failed {
  return { outcome: "failed", error: new StoreError(lockName, facts) };
}

/** The outcomes that an error report names. It lists all other replies as `done`. */
const REPORTED: Readonly<Record<string, ServerAnswer["answer"]>> = {
  granted: "granted",
  held: "held",
  unheld: "not-held",
};

/** Converts an answer to the form that error reports use. */
function reportOf(
  answer: { readonly outcome: string; readonly restMs?: number } | Failed | undefined,
  server: number,
): ServerAnswer {
  if (answer === undefined) return { server, answer: "none", leaseLeftMs: undefined, error: undefined };
  if ("error" in answer) {
    const { error } = answer;
    const isSilent = error instanceof StoreError && error.transient && error.mayHaveRun;
    return { server, answer: isSilent ? "none" : "error", leaseLeftMs: undefined, error };
  }
  const restMs = answer.outcome === "held" ? answer.restMs : undefined;
  const leaseLeftMs = restMs !== undefined && restMs < 0 ? Infinity : restMs;
  return { server, answer: REPORTED[answer.outcome] ?? "done", leaseLeftMs, error: undefined };
}

/**
 * Creates the error for a request that got too few replies, or replies that do not determine its outcome.
 *
 * @param facts  `why` the request failed, and whether it may have run. By default, both follow from the answers
 */
export function quorumError(
  lockName: string,
  replies: Answers<{ readonly outcome: string; readonly restMs?: number }>,
  facts: { readonly why?: string; readonly mayHaveRun?: boolean } = {},
): QuorumError {
  const answers = replies.map(reportOf);
  const errors = answers.filter(({ error }) => error !== undefined).map(({ error }) => error);
  const spare = answers.length - quorumOf(answers.length);
  const isHopeless = errors.filter((error) => !(error instanceof StoreError) || !error.transient).length > spare;
  return new QuorumError(lockName, {
    answers,
    // If even one server granted the lock, the request has an effect there until that grant is released.
    mayHaveRun: errors.some(mayHaveRun) || answers.some(({ answer }) => answer === "granted" || answer === "done"),
    transient: !isHopeless,
    ...(isAnswered(replies) && { why: "no majority of the servers agreed" }),
    ...facts,
  });
}

/** The independent servers of a quorum, and the requests to one or all of them. */
import { call } from "../core/call.js";
import type { ServerAnswer } from "../core/error-messages.js";
import { QuorumError, StoreError } from "../core/errors.js";
import type { Guard } from "../core/guard.js";
import type { Outcome, Store } from "../core/store.js";
import { redlockAcquire, redlockConfirm, redlockExtend, redlockInspect, redlockRelease } from "../generated/scripts.js";
import { quorumOf } from "./decision.js";

/** One server of a quorum. */
export interface QuorumServer {
  /** Its index in the list of servers, from 0. */
  readonly index: number;
  readonly store: Store;
  /** Checks whether the server may be used before a lock is acquired there. */
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

/** Requests the lock on one server. @throws StoreError, EvictionError, ProtocolError */
export function askForVote(
  { store, guard }: QuorumServer,
  { name, lock, fence }: RedlockPlace,
  { owner, leaseMs }: { readonly owner: string; readonly leaseMs: number },
  timeoutMs: number,
): Promise<Outcome<(typeof redlockAcquire)["replies"][number]>> {
  const send = (): ReturnType<typeof askForVote> =>
    call({ store, name }, redlockAcquire, { lock, fence }, { owner, leaseMs }, timeoutMs);
  return guard.isOpen ? send() : guard.pass(name, send, timeoutMs);
}

/**
 * Raises one server to the token, if the owner still holds there and the number is still `reported` or already the
 * token.
 *
 * @returns whether the server has the token for this owner
 * @throws StoreError
 */
export async function raise(
  { store }: QuorumServer,
  { name, lock, fence }: RedlockPlace,
  args: { readonly owner: string; readonly reported: number; readonly token: number; readonly leaseMs: number },
  timeoutMs: number,
): Promise<boolean> {
  const reply = await call({ store, name }, redlockConfirm, { lock, fence }, args, timeoutMs);
  return reply.outcome === "confirmed";
}

/**
 * Renews the lease on one server, if the owner still holds there and the number is still `standing`.
 *
 * @throws StoreError
 */
export async function extendOn(
  { store }: QuorumServer,
  { name, lock, fence }: RedlockPlace,
  args: { readonly owner: string; readonly standing: number; readonly leaseMs: number },
  timeoutMs: number,
): Promise<boolean> {
  const reply = await call({ store, name }, redlockExtend, { lock, fence }, args, timeoutMs);
  return reply.outcome === "extended";
}

/**
 * Releases the lock on one server and publishes that on `channel`.
 *
 * @returns the number of subscribers that received the message; undefined if the lock was not held there
 * @throws StoreError
 */
export async function releaseOn(
  { store }: QuorumServer,
  { name, lock }: RedlockPlace,
  args: { readonly owner: string; readonly channel: string },
  timeoutMs: number,
): Promise<number | undefined> {
  const reply = await call({ store, name }, redlockRelease, { lock }, args, timeoutMs);
  return reply.outcome === "released" ? reply.listeners : undefined;
}

/** The state of a lock on one server. */
export interface ServerView {
  /** The server's number for this lock; 0 if there is none. */
  readonly token: number;
  readonly owner: string | undefined;
  readonly leaseLeftMs: number;
}

/** Reads the state of the lock on one server. @throws StoreError */
export async function lookAt(
  { store }: QuorumServer,
  { name, lock, fence }: RedlockPlace,
  timeoutMs: number,
): Promise<ServerView> {
  const reply = await call({ store, name }, redlockInspect, { lock, fence }, {}, timeoutMs);
  const owner = reply.outcome === "held" ? reply.owner[0] : undefined;
  return { token: reply.token, owner, leaseLeftMs: reply.leftMs < 0 ? Infinity : reply.leftMs };
}

/** The outcome of a request to one server. */
export type Answer<Reply> = { readonly reply: Reply } | { readonly error: unknown };

/** The outcomes of the same request to each server, by index; undefined where there is no reply yet. */
export type Answers<Reply> = readonly (Answer<Reply> | undefined)[];

/**
 * Sends a request to all servers in parallel.
 *
 * @param isEnough  whether the answers so far decide. If so, does not wait for the other requests, which still run
 * @returns the answers at that moment; all of them if they never decide
 */
export function askAll<Reply>(
  servers: readonly QuorumServer[],
  send: (server: QuorumServer) => Promise<Reply>,
  isEnough: (answers: Answers<Reply>) => boolean,
): Promise<Answers<Reply>> {
  return new Promise((resolve) => {
    const answers: (Answer<Reply> | undefined)[] = servers.map(() => undefined);
    let missing = servers.length;
    for (const server of servers) {
      const settle = (answer: Answer<Reply>): void => {
        answers[server.index] = answer;
        missing -= 1;
        if (missing === 0 || isEnough(answers)) resolve([...answers]);
      };
      send(server).then(
        (reply) => settle({ reply }),
        (error: unknown) => settle({ error }),
      );
    }
  });
}

/** Returns the number of servers whose reply passes. By default, counts all replies. */
export function count<Reply>(answers: Answers<Reply>, passes: (reply: Reply) => boolean = () => true): number {
  return answers.filter((answer) => answer !== undefined && "reply" in answer && passes(answer.reply)).length;
}

/** Whether a failed request may have run on the server. */
export function mayHaveRun(error: unknown): boolean {
  return !(error instanceof StoreError) || error.mayHaveRun;
}

/** Describes the error of one server for a report. */
export function failed(server: number, error: unknown): ServerAnswer {
  const isSilent = error instanceof StoreError && error.transient && error.mayHaveRun;
  return { server, answer: isSilent ? "none" : "error", leaseLeftMs: undefined, error };
}

/**
 * Creates the error for a request without replies from a majority.
 *
 * @param facts  `why` the request failed, and whether it may have run. By default, both follow from the answers
 */
export function quorumError(
  lockName: string,
  answers: readonly ServerAnswer[],
  facts: { readonly why?: string; readonly mayHaveRun?: boolean } = {},
): QuorumError {
  const errors = answers.filter(({ error }) => error !== undefined).map(({ error }) => error);
  const spare = answers.length - quorumOf(answers.length);
  const isHopeless = errors.filter((error) => !(error instanceof StoreError) || !error.transient).length > spare;
  return new QuorumError(lockName, {
    answers,
    // A grant of a single server has run, and it is in effect until it is released.
    mayHaveRun: errors.some(mayHaveRun) || answers.some(({ answer }) => answer === "granted" || answer === "done"),
    transient: !isHopeless,
    ...facts,
  });
}

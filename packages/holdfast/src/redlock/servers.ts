/** The N servers of a quorum, which know nothing of each other, and how all of them are asked at once. */
import { call } from "../core/call.js";
import type { ServerAnswer } from "../core/error-messages.js";
import { QuorumError, StoreError } from "../core/errors.js";
import type { Guard } from "../core/guard.js";
import type { Outcome, Store } from "../core/store.js";
import { redlockAcquire, redlockConfirm, redlockExtend, redlockInspect, redlockRelease } from "../generated/scripts.js";
import { quorumOf } from "./decision.js";

/** One of them. */
export interface QuorumServer {
  /** Its place among them, from 0. */
  readonly index: number;
  readonly store: Store;
  /** Stands before what takes a lock there. */
  readonly guard: Guard;
}

/** Where a lock is, the same on each server. */
export interface RedlockPlace {
  readonly name: string;
  readonly lock: string;
  readonly fence: string;
  /** What its waiters listen on. */
  readonly channel: string;
}

/** Asks for the lock on one server. @throws StoreError, EvictionError, ProtocolError */
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

/** Raises one server to the token, if it stands where it said. @throws StoreError */
export async function raise(
  { store }: QuorumServer,
  { name, lock, fence }: RedlockPlace,
  args: { readonly owner: string; readonly reported: number; readonly token: number; readonly leaseMs: number },
  timeoutMs: number,
): Promise<boolean> {
  const reply = await call({ store, name }, redlockConfirm, { lock, fence }, args, timeoutMs);
  return reply.outcome === "confirmed";
}

/** Begins the lease anew on one server, if it stands where it is known to. @throws StoreError */
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
 * Gives the lock back on one server, and tells whoever listens on `channel`.
 *
 * @returns how many listened there; undefined if it was not held there
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

/** What one server says about a lock. */
export interface ServerView {
  /** Number that the server stands at; 0 if there is none. */
  readonly token: number;
  readonly owner: string | undefined;
  readonly leaseLeftMs: number;
}

/** Looks at the lock on one server. @throws StoreError */
export async function lookAt(
  { store }: QuorumServer,
  { name, lock, fence }: RedlockPlace,
  timeoutMs: number,
): Promise<ServerView> {
  const reply = await call({ store, name }, redlockInspect, { lock, fence }, {}, timeoutMs);
  const owner = reply.outcome === "held" ? reply.owner[0] : undefined;
  return { token: reply.token, owner, leaseLeftMs: reply.leftMs < 0 ? Infinity : reply.leftMs };
}

/** What became of a request to one server. */
export type Answer<Reply> = { readonly reply: Reply } | { readonly error: unknown };

/** What became of the same request to each of them, by index; undefined where there is no answer yet. */
export type Answers<Reply> = readonly (Answer<Reply> | undefined)[];

/**
 * Asks all servers at once.
 *
 * @param isEnough  whether the answers so far decide, so that nobody waits for the others, which are carried out all the same
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

/** How many servers gave an answer that passes. */
export function count<Reply>(answers: Answers<Reply>, passes: (reply: Reply) => boolean = () => true): number {
  return answers.filter((answer) => answer !== undefined && "reply" in answer && passes(answer.reply)).length;
}

/** Whether a failed request may have been carried out. */
export function mayHaveRun(error: unknown): boolean {
  return !(error instanceof StoreError) || error.mayHaveRun;
}

/** What an error of one server is called. */
export function failed(server: number, error: unknown): ServerAnswer {
  const isSilent = error instanceof StoreError && error.transient && error.mayHaveRun;
  return { server, answer: isSilent ? "none" : "error", leaseLeftMs: undefined, error };
}

/**
 * The error of a request that no majority has answered.
 *
 * @param facts  what did not come about, and whether anything may have been carried out; by default that is seen by the answers
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
    // What a server has granted was carried out, until it is given back.
    mayHaveRun: errors.some(mayHaveRun) || answers.some(({ answer }) => answer === "granted" || answer === "done"),
    transient: !isHopeless,
    ...facts,
  });
}

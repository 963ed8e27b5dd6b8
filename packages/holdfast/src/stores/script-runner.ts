/**
 * The life of one script call, the same for every client library: EVALSHA, SCRIPT LOAD where the server does
 * not know the script, one deadline over all of it, and the same form of reply and error.
 *
 * It is on the path of every acquire and release, hence callbacks on one promise in place of async functions.
 */

import { StoreError } from "../core/errors.js";
import type { Reply, Script } from "../core/script.js";
import { timerMs } from "./deadline.js";
import { failureOf, isUnknownScript } from "./failure.js";

/**
 * How often one call teaches a script: the cache may be flushed again at once, and by somebody who goes on doing so. A server
 * that forgets each time is found out before the deadline all the same.
 */
const LESSONS = 100;

/** What a client library has to offer so that scripts can run on it. */
export interface ScriptClient {
  evalsha(sha1: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /**
   * SCRIPT LOAD, on every server that may get the EVALSHA.
   *
   * @param keys    of the EVALSHA, for a client that has several servers
   * @param lesson  how often this call has taught the script, from 1: whom a cluster sent on was not reached by the first
   */
  load(source: string, keys: readonly string[], lesson: number): Promise<unknown>;
  /** True for a client that sends each call to the server that has its keys, and follows them. */
  readonly isCluster?: boolean;
  /** True once the owner has closed the client, so that a call now is certain to send nothing. */
  isClosed(): boolean;
  /** Rises with each lost connection, for a client that sends again what was in flight; else constant. */
  losses(): number;
}

/**
 * Runs `script` on `client`; the promise settles within `timeoutMs`, whatever the client does.
 *
 * EVAL is never used: a server that has forgotten a script is taught it first, so that one and the same
 * command runs it each time.
 *
 * @throws StoreError  see the port
 */
export function runScript(
  client: ScriptClient,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  timeoutMs: number,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const lossesAtStart = client.losses();
    const closedAtStart = client.isClosed();
    let isSettled = false;
    let lessons = 0;

    const timer = setTimeout(() => {
      isSettled = true;
      const cause = new Error(`no answer within ${timeoutMs} ms`);
      reject(new StoreError(script.name, { mayHaveRun: true, transient: true, cause }));
    }, timerMs(timeoutMs));

    const onReply = (reply: unknown): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      resolve(toReply(reply));
    };
    const onError = (cause: unknown): void => {
      if (isSettled) return;
      if (lessons < LESSONS && isUnknownScript(cause)) {
        lessons += 1;
        teach();
        return;
      }
      isSettled = true;
      clearTimeout(timer);
      const failure = closedAtStart
        ? { mayHaveRun: false, transient: false, cause }
        : failureOf(cause, client.losses() !== lossesAtStart, client.isCluster);
      const transient = failure.transient && !client.isClosed();
      reject(new StoreError(script.name, { ...failure, transient }));
    };
    // A client may throw where it should reject.
    const send = (): void => {
      // After the deadline nobody reads the answer, and the caller may already have given up the lock.
      if (isSettled) return;
      try {
        client.evalsha(script.sha1, keys, args).then(onReply, onError);
      } catch (cause) {
        onError(cause);
      }
    };
    const teach = (): void => {
      try {
        client.load(script.source, keys, lessons).then(send, onError);
      } catch (cause) {
        onError(cause);
      }
    };
    send();
  });
}

/**
 * The number as the server should read it. A script input has no exponent, which begins at 10^21.
 */
export function toArgument(value: string | number): string {
  if (typeof value === "string") return value;
  return Number.isInteger(value) && Math.abs(value) >= 1e21 ? BigInt(value).toString() : String(value);
}

/** A client may be set up to give strings as bytes, and integers as strings, bigints or bytes. */
function toReply(reply: unknown): Reply {
  if (typeof reply === "number") return reply;
  if (!Array.isArray(reply)) return Number(toItem(reply) ?? Number.NaN);
  return reply.every(isItem) ? reply : reply.map(toItem);
}

function isItem(item: unknown): item is string | number | null {
  return typeof item === "number" || typeof item === "string" || item === null;
}

function toItem(item: unknown): string | number | null {
  if (isItem(item)) return item;
  if (item === undefined) return null;
  if (item instanceof Uint8Array) return Buffer.from(item.buffer, item.byteOffset, item.byteLength).toString();
  return typeof item === "bigint" ? Number(item) : String(item);
}

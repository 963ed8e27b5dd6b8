/**
 * The life of one script call, the same for every client library: EVALSHA, SCRIPT LOAD where the server does
 * not know the script, one deadline over all of it, and the same form of reply and error.
 *
 * It is on the path of every acquire and release, hence callbacks on one promise in place of async functions.
 */

import { AdvisedCause, StoreError, type StoreFailure } from "../core/errors.js";
import type { Reply, Script, ScriptText } from "../core/store.js";
import { quietFailure, type Replicas } from "../core/store.js";
import { failureOf, isReadOnly, isTimeout, isUnknownScript, messageOf } from "./failure.js";
import type { Admission, Gate } from "./gate.js";
import { forbiddenCommand, missingPermission } from "./permission.js";
import { startTimeout, within } from "./timeout.js";

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
  /** EVALSHA without keys on each master; who does not answer in time is left out. Present for a client of a cluster. */
  evalshaOnEach?(sha1: string, args: readonly (string | number)[], timeoutMs: number): Promise<readonly unknown[]>;
  /** True for a client that sends each call to the server that has its keys, and follows them. */
  readonly isCluster?: boolean | undefined;
  /**
   * EVALSHA, and then WAIT on the same connection: the reply, and how many replicas have what it wrote. Absent where it cannot
   * be known that the connection is the same.
   *
   * @throws if the connection was lost in between
   */
  acknowledged?(
    sha1: string,
    keys: readonly string[],
    args: readonly (string | number)[],
    replicas: Replicas,
  ): Promise<readonly [reply: unknown, acknowledged: number]>;
  /** True once the owner has closed the client, so that a call now is certain to send nothing. */
  isClosed(): boolean;
  /** What to do so that the client replaces a dead connection; undefined if it does that by itself, or it is not known. */
  cure?(): string | undefined;
  /** Which server it has no connection to, and why if it has said so; undefined while it is connected. */
  noConnection?(): string | undefined;
  /** How many calls in a row had no reply. Counted here. */
  unanswered?: number | undefined;
  /** Rises with each lost connection, for a client that sends again what was in flight; else constant. */
  losses(): number;
}

/**
 * Runs `script` on `client`; the promise settles within `timeoutMs`, whatever the client does.
 *
 * EVAL is never used: a server that has forgotten a script is taught it first, so that one and the same
 * command runs it each time.
 *
 * @param gate  stands before what can make somebody a holder; without it every server may grant
 * @throws StoreError  see the port
 */
export function runScript(
  client: ScriptClient,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  timeoutMs: number,
  gate?: Gate,
  replicas?: Replicas,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const lossesAtStart = client.losses();
    const closedAtStart = client.isClosed();
    let isSettled = false;
    let lessons = 0;
    let wasSent = false;
    let text: ScriptText = script;

    const timer = startTimeout(() => {
      if (isSettled) return;
      isSettled = true;
      const noConnection = client.noConnection?.();
      const why = noConnection === undefined ? "" : `: there is no connection to ${noConnection}`;
      const cause = noReply(client, `no answer within ${timeoutMs} ms${why}`);
      reject(new StoreError(script.name, { mayHaveRun: wasSent, transient: true, cause }));
    }, timeoutMs);

    const onReply = (reply: unknown): void => {
      if (isSettled) return;
      isSettled = true;
      client.unanswered = 0;
      clearTimeout(timer);
      resolve(toReply(reply));
    };
    const onError = (reason: unknown): void => {
      if (isSettled) return;
      const cause = isTimeout(reason) ? noReply(client, messageOf(reason), reason) : explained(reason, text.source);
      if (!isTimeout(reason)) client.unanswered = 0;
      if (lessons < LESSONS && isUnknownScript(cause)) {
        lessons += 1;
        if (gate !== undefined && script.grants === true && text !== script.withoutGrant) teachIfSettled(gate);
        else teach();
        return;
      }
      if (isReadOnly(cause)) gate?.serverMayHaveChanged();
      isSettled = true;
      clearTimeout(timer);
      const failure = closedAtStart
        ? { mayHaveRun: false, transient: false, cause }
        : failureOf(cause, client.losses() !== lossesAtStart, client.isCluster);
      const transient = failure.transient && !client.isClosed();
      const missing = missingPermission(cause, { source: text.source, keys, channels: channelsOf(script, args) });
      reject(new StoreError(script.name, { ...failure, transient, missingPermission: missing }));
    };
    const sent = (): Promise<unknown> => {
      if (replicas === undefined || script.renews !== true || client.acknowledged === undefined) {
        return client.evalsha(text.sha1, keys, args);
      }
      const within = shortened(replicas, timeoutMs);
      return client
        .acknowledged(text.sha1, keys, args, within)
        .then(([reply, count]) => enough(reply, Number(toItem(count)), within));
    };
    // A client may throw where it should reject.
    const send = (): void => {
      // After the deadline nobody reads the answer, and the caller may already have given up the lock.
      if (isSettled) return;
      wasSent = true;
      try {
        sent().then(onReply, onError);
      } catch (cause) {
        onError(cause);
      }
    };
    const teach = (): void => {
      try {
        client.load(text.source, keys, lessons).then(send, onError);
      } catch (cause) {
        onError(cause);
      }
    };
    const refuse = (failure: StoreFailure): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      // What was refused now may have been sent before, and sent again by the client.
      const mayHaveRun = wasSent && client.losses() !== lossesAtStart;
      reject(new StoreError(script.name, { ...failure, mayHaveRun }));
    };
    const unasked = (error: unknown): void => {
      const transient = !(error instanceof StoreError) || error.transient;
      const { cause, missingPermission: missing } =
        error instanceof StoreError ? error : { cause: error, missingPermission: undefined };
      refuse({ mayHaveRun: false, transient, cause, missingPermission: missing });
    };
    const proceed = (admission: Admission): void => {
      if ("text" in admission) {
        text = admission.text;
        send();
      } else if (script.grants !== true) {
        send();
      } else if (script.withoutGrant !== undefined) {
        text = script.withoutGrant;
        send();
      } else {
        refuse(quietFailure(admission));
      }
    };
    const admit = (asked: Gate): void => {
      const ready = asked.ready(script, keys, args, timeoutMs);
      if (ready !== undefined) {
        text = ready;
        send();
      } else asked.ask(script, keys, timeoutMs).then(onceMoreUnless(asked, proceed), unasked);
    };
    const teachIfSettled = (asked: Gate): void => {
      const load = async (taught: ScriptText): Promise<unknown> => client.load(taught.source, keys, lessons);
      asked.teach(script, keys, timeoutMs, load, lessons).then(onceMoreUnless(asked, proceed), (error: unknown) => {
        if (error instanceof StoreError) unasked(error);
        else onError(error);
      });
    };
    /** What was said over a connection that has been lost since does not count. */
    const onceMoreUnless =
      (asked: Gate, then: (admission: Admission) => void) =>
      (admission: Admission | undefined): void => {
        if (isSettled) return;
        if (admission === undefined) admit(asked);
        else then(admission);
      };
    if (gate === undefined) send();
    else admit(gate);
  });
}

/** From so many calls without a reply on, one after the other, the error says what to do. */
const MANY_UNANSWERED = 3;

function noReply(client: ScriptClient, message: string, cause?: unknown): AdvisedCause {
  const count = (client.unanswered ?? 0) + 1;
  client.unanswered = count;
  const cure = count >= MANY_UNANSWERED ? client.cure?.() : undefined;
  return new AdvisedCause(message, { cause, advice: cure && adviceOf(count, cure) });
}

/** With advice, if the server lets no script call a command that this one calls. */
function explained(cause: unknown, source: string): unknown {
  const command = forbiddenCommand(cause, source);
  if (command === undefined) return cause;
  const advice = `Holdfast needs ${command} in scripts, and this server does not allow it (docs/hosting.md).`;
  return new AdvisedCause(messageOf(cause), { cause, advice });
}

function adviceOf(count: number, cure: string): string {
  return `The last ${count} commands had no reply: if the server is up, the connection is dead; ${cure} (docs/half-open-connections.md).`;
}

/** To teach a script to all servers, and not to that of a key alone. */
const TO_ALL = 2;

/** As `Store.runOnEach`: taught each time, since it is asked seldom. @throws StoreError */
export async function runOnEach(
  client: ScriptClient,
  script: Script,
  args: readonly (string | number)[],
  timeoutMs: number,
): Promise<readonly Reply[]> {
  const ask = async (): Promise<readonly unknown[]> => {
    // Whatever comes of it: by then the client knows who the servers are.
    await client.evalsha(script.sha1, [], args).catch(() => {});
    await client.load(script.source, [], TO_ALL);
    return client.evalshaOnEach?.(script.sha1, args, timeoutMs / 2) ?? [];
  };
  try {
    return (await within(timeoutMs, ask())).map(toReply);
  } catch (cause) {
    const missing = missingPermission(cause, script);
    throw new StoreError(script.name, { ...failureOf(cause, false, true), missingPermission: missing });
  }
}

/** What a script may publish to: an inbox is what a client id is appended to. */
function channelsOf(script: Script, args: readonly (string | number)[]): string[] {
  return script.args.flatMap((name, at) => {
    if (name === "inbox") return [`${args[at]}*`];
    return name === "channel" ? [String(args[at])] : [];
  });
}

/** With time left for the answer to come back. */
function shortened({ atLeast, timeoutMs: waitMs }: Replicas, timeoutMs: number): Replicas {
  return { atLeast, timeoutMs: Math.max(1, Math.min(waitMs, Math.floor(timeoutMs / 2))) };
}

/** @throws Error  the lease was begun anew, but too few replicas have it */
function enough(reply: unknown, count: number, { atLeast, timeoutMs }: Replicas): unknown {
  if (count >= atLeast || Number(toItem(reply)) !== 1) return reply;
  throw new Error(`only ${count} of ${atLeast} replicas acknowledged it within ${timeoutMs} ms`);
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

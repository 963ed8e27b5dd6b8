/**
 * The life of one script call, the same for every client library: EVALSHA, SCRIPT LOAD where the server does
 * not know the script, one deadline over all of it, and the same form of reply and error.
 *
 * It is on the path of every acquire and release: one object for each call, and callbacks in place of async functions.
 */

import { AdvisedCause, StoreError, type StoreFailure } from "../core/errors.js";
import type { Replicas, Reply, Script, ScriptText, Store } from "../core/store.js";
import { quietFailure } from "../core/store.js";
import type { Admission, FailoverGuard } from "./failover-guard.js";
import { failureOf, isReadOnly, isTimeout, isUnknownScript, messageOf } from "./failure.js";
import { forbiddenCommand, missingPermission } from "./permission.js";
import { startTimeout, within } from "./timeout.js";

/**
 * How often one call loads a script: the cache may be flushed again at once, and by somebody who goes on doing so. A server
 * that forgets each time is found out before the deadline all the same.
 */
const LOADS_MAX = 100;

/** What a client library has to offer so that scripts can run on it. */
export interface ScriptClient {
  evalsha(sha1: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /**
   * SCRIPT LOAD, on every server that may get the EVALSHA.
   *
   * @param keys    of the EVALSHA, for a client that has several servers
   * @param attempt  which time this call loads the script, from 1: where a cluster redirects, the first may reach the wrong server
   */
  load(source: string, keys: readonly string[], attempt: number): Promise<unknown>;
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

/** Runs scripts on one client. One for each store, and one for the questions of its guard. */
export class ScriptRunner {
  readonly #client: ScriptClient;
  readonly #guard: FailoverGuard | undefined;
  readonly #replicas: Replicas | undefined;

  /**
   * @param guard      stands before what can make somebody a holder; without it every server may grant
   * @param replicas  how many replicas must have a renewal; without it none
   */
  constructor(client: ScriptClient, guard?: FailoverGuard, replicas?: Replicas) {
    this.#client = client;
    this.#guard = guard;
    this.#replicas = replicas;
  }

  /**
   * As `Store.run`; the promise settles within `timeoutMs`, whatever the client does.
   *
   * EVAL is never used: a script that the server has forgotten is loaded first, so that one and the same command runs it
   * each time.
   *
   * @throws StoreError  see the port
   */
  readonly run: Store["run"] = (script, keys, args, timeoutMs) => {
    const client = this.#client;
    const guard = this.#guard;
    const sent = new SentScript(client, script, keys, args, timeoutMs, guard);
    const text = guard === undefined ? script : guard.ready(script, keys, args, timeoutMs);
    // Also where the guard is asked first: whenever it is sent, a renewal counts only with its replicas.
    if (this.#replicas !== undefined && script.renews === true) sent.replicas = shortened(this.#replicas, timeoutMs);
    if (text === undefined) {
      sent.ask();
    } else if (sent.replicas !== undefined) {
      sent.text = text;
      sent.send();
    } else {
      // Sent from here, as most calls are: a reader of a stack trace, or of this file, comes to the client at once.
      sent.text = text;
      sent.wasSent = true;
      try {
        client.evalsha(text.sha1, keys, args).then(sent.onReply, sent.onError);
      } catch (cause) {
        // A client may throw where it should reject.
        sent.onError(cause);
      }
    }
    return sent.reply;
  };
}

/** One script call on its way: sent, sent again where the script had to be loaded, and answered or given up. */
class SentScript {
  readonly reply: Promise<Reply>;
  /** What is sent: the script, or a form of it for one server. */
  text: ScriptText;
  wasSent = false;
  /** Of a renewal that replicas must have. */
  replicas: Replicas | undefined;
  readonly #client: ScriptClient;
  readonly #script: Script;
  readonly #keys: readonly string[];
  readonly #args: readonly (string | number)[];
  readonly #timeoutMs: number;
  readonly #guard: FailoverGuard | undefined;
  readonly #lossesAtStart: number;
  readonly #closedAtStart: boolean;
  readonly #timer: NodeJS.Timeout;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: StoreError) => void;
  #isSettled = false;
  #loads = 0;

  constructor(
    client: ScriptClient,
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
    guard: FailoverGuard | undefined,
  ) {
    this.#client = client;
    this.#script = script;
    this.#keys = keys;
    this.#args = args;
    this.#timeoutMs = timeoutMs;
    this.#guard = guard;
    this.text = script;
    this.#lossesAtStart = client.losses();
    this.#closedAtStart = client.isClosed();
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = startTimeout(() => this.#timeUp(), timeoutMs);
  }

  readonly onReply = (reply: unknown): void => {
    if (!this.#settle()) return;
    this.#client.unanswered = 0;
    this.#resolve(toReply(reply));
  };

  readonly onError = (reason: unknown): void => {
    if (this.#isSettled) return;
    const client = this.#client;
    const cause = isTimeout(reason) ? noReply(client, messageOf(reason), reason) : explained(reason, this.text.source);
    if (!isTimeout(reason)) client.unanswered = 0;
    if (this.#loads < LOADS_MAX && isUnknownScript(cause)) {
      this.#loads += 1;
      this.#loadAndSend();
      return;
    }
    if (isReadOnly(cause)) this.#guard?.serverMayHaveChanged();
    const failure = this.#closedAtStart
      ? { mayHaveRun: false, transient: false, cause }
      : failureOf(cause, client.losses() !== this.#lossesAtStart, client.isCluster);
    const transient = failure.transient && !client.isClosed();
    const refused = { source: this.text.source, keys: this.#keys, channels: channelsOf(this.#script, this.#args) };
    this.#fail({ ...failure, transient, missingPermission: missingPermission(cause, refused) });
  };

  readonly send = (): void => {
    // After the deadline nobody reads the answer, and the caller may already have given up the lock.
    if (this.#isSettled) return;
    this.wasSent = true;
    try {
      this.#sent().then(this.onReply, this.onError);
    } catch (cause) {
      this.onError(cause);
    }
  };

  /** Asks the guard, which does not know whether the server may grant. */
  ask(): void {
    const guard = this.#guard as FailoverGuard;
    this.#follow(guard.ask(this.#script, this.#keys, this.#timeoutMs), this.#unasked);
  }

  #sent(): Promise<unknown> {
    const { replicas, text } = this;
    const client = this.#client;
    if (replicas === undefined || client.acknowledged === undefined) {
      return client.evalsha(text.sha1, this.#keys, this.#args);
    }
    return client
      .acknowledged(text.sha1, this.#keys, this.#args, replicas)
      .then(([reply, count]) => enough(reply, Number(toItem(count)), replicas));
  }

  /** The server does not know the script. One that makes somebody a holder is loaded only by way of the guard. */
  #loadAndSend(): void {
    const script = this.#script;
    if (this.#guard === undefined || script.grants !== true || this.text === script.withoutGrant) {
      try {
        this.#load(this.text).then(this.send, this.onError);
      } catch (cause) {
        this.onError(cause);
      }
      return;
    }
    const load = async (text: ScriptText): Promise<unknown> => this.#load(text);
    const loaded = this.#guard.load(script, this.#keys, this.#timeoutMs, load, this.#loads);
    this.#follow(loaded, (error) => (error instanceof StoreError ? this.#unasked(error) : this.onError(error)));
  }

  #load({ source }: ScriptText): Promise<unknown> {
    return this.#client.load(source, this.#keys, this.#loads);
  }

  /** Goes on as the guard says. What was said over a connection that has been lost since does not count, and is asked again. */
  #follow(asked: Promise<Admission | undefined>, onError: (error: unknown) => void): void {
    asked.then((admission) => {
      if (this.#isSettled) return;
      if (admission !== undefined) {
        this.#proceed(admission);
        return;
      }
      const ready = this.#guard?.ready(this.#script, this.#keys, this.#args, this.#timeoutMs);
      if (ready === undefined) {
        this.ask();
        return;
      }
      this.text = ready;
      this.send();
    }, onError);
  }

  #proceed(admission: Admission): void {
    const { grants, withoutGrant } = this.#script;
    if ("text" in admission) this.text = admission.text;
    else if (grants === true && withoutGrant !== undefined) this.text = withoutGrant;
    else if (grants === true) {
      this.#refuse(quietFailure(admission));
      return;
    }
    this.send();
  }

  readonly #unasked = (error: unknown): void => {
    const transient = !(error instanceof StoreError) || error.transient;
    const { cause, missingPermission: missing } =
      error instanceof StoreError ? error : { cause: error, missingPermission: undefined };
    this.#refuse({ mayHaveRun: false, transient, cause, missingPermission: missing });
  };

  /** What is refused now may have been sent before, and sent again by the client. */
  #refuse(failure: StoreFailure): void {
    this.#fail({ ...failure, mayHaveRun: this.wasSent && this.#client.losses() !== this.#lossesAtStart });
  }

  #timeUp(): void {
    if (this.#isSettled) return;
    const noConnection = this.#client.noConnection?.();
    const why = noConnection === undefined ? "" : `: there is no connection to ${noConnection}`;
    const cause = noReply(this.#client, `no answer within ${this.#timeoutMs} ms${why}`);
    this.#fail({ mayHaveRun: this.wasSent, transient: true, cause });
  }

  #fail(failure: StoreFailure): void {
    if (this.#settle()) this.#reject(new StoreError(this.#script.name, failure));
  }

  /** @returns whether it was not settled before */
  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    return true;
  }
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

/** Loads a script on all servers, and not on that of a key alone. */
const TO_ALL = 2;

/** As `Store.runOnEach`: loaded each time, since it is asked seldom. @throws StoreError */
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

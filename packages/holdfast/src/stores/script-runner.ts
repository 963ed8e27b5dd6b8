/**
 * Runs one script call, in the same way for every client library: EVALSHA, SCRIPT LOAD if the server does not know the
 * script, one deadline for the whole call, and uniform replies and errors.
 *
 * This code runs on every acquire and release, so it creates one object per call and uses callbacks instead of async
 * functions.
 */

import { AdvisedCause, StoreError, type StoreFailure } from "../core/errors.js";
import type { Replicas, Reply, Script, ScriptText, Store } from "../core/store.js";
import { quietFailure } from "../core/store.js";
import type { Admission, FailoverGuard, ScriptCall } from "./failover-guard.js";
import {
  failureOf,
  forbiddenCommand,
  isReadOnly,
  isTimeout,
  isUnknownScript,
  lackOf,
  messageOf,
  missingPermission,
  refusesForGood,
} from "./failure.js";
import { startTimeout } from "./timeout.js";

/**
 * Maximum number of times that one call loads a script. One load may not be enough, because the script cache may be
 * flushed repeatedly. The limit is low enough for the call to fail before its deadline if the server never keeps the
 * script.
 */
const LOADS_MAX = 100;

/**
 * How many releases are sent as scripts before the native commands are tried. Most servers lack these commands, and a
 * process that releases few locks would gain nothing from the attempt.
 */
const RELEASES_BEFORE_NATIVE = 16;

/** What a client library must provide so that scripts can run on it. */
export interface ScriptClient {
  evalsha(sha1: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /**
   * Sends DELIFEQ with the first key and the argument, and then EXISTS with the second key. The server executes them in
   * this order; see `freed`. Absent if the client cannot guarantee the order.
   */
  free?: ((keys: readonly string[], args: readonly (string | number)[]) => Promise<number>) | undefined;
  /**
   * Runs SCRIPT LOAD on every server that may receive the EVALSHA.
   *
   * @param keys     the keys of the EVALSHA, for a client of several servers
   * @param attempt  how many times this call has loaded the script, counting from 1. If a cluster redirected the call,
   *                 the first attempt may reach the wrong server
   */
  load(source: string, keys: readonly string[], attempt: number): Promise<unknown>;
  /**
   * Runs EVALSHA without keys on each master, and skips masters that do not reply in time. Present on a cluster client.
   */
  evalshaOnEach?(sha1: string, args: readonly (string | number)[], timeoutMs: number): Promise<readonly unknown[]>;
  /** True for a client that sends each call to the server that has its keys, and follows moved slots. */
  readonly isCluster?: boolean | undefined;
  /**
   * Runs EVALSHA and then WAIT on the same connection. Returns the reply and the number of replicas that acknowledged.
   * Absent if the client cannot guarantee that both use the same connection.
   *
   * @throws if the connection was lost in between
   */
  acknowledged?(
    sha1: string,
    keys: readonly string[],
    args: readonly (string | number)[],
    replicas: Replicas,
  ): Promise<readonly [reply: unknown, acknowledged: number]>;
  /** True once the owner has closed the client. From then on, calls send nothing. */
  isClosed(): boolean;
  /**
   * Advice on how to make the client replace a dead connection; undefined if it does so on its own, or if there is no
   * advice.
   */
  cure?(): string | undefined;
  /**
   * While the client has no connection: the server to name in errors, with the client's last error if known.
   * Undefined while the client is connected.
   */
  noConnection?(): string | undefined;
  /** Number of consecutive calls without a reply. `ScriptRunner` updates it. */
  unanswered?: number | undefined;
  /** Rises with each lost connection if the client resends commands that were in flight; otherwise constant. */
  losses(): number;
}

/** Runs scripts on one client. Each store has one runner, and a second one for the requests of its guard. */
export class ScriptRunner {
  readonly #client: ScriptClient;
  readonly #guard: FailoverGuard | undefined;
  readonly #replicas: Replicas | undefined;
  readonly #loadings: Loadings = new Map();
  #releases = 0;

  /**
   * @param guard     checks scripts that can grant a lock; without a guard, every server may grant
   * @param replicas  how many replicas must acknowledge a renewal; without it, none
   */
  constructor(client: ScriptClient, guard?: FailoverGuard, replicas?: Replicas) {
    this.#client = client;
    this.#guard = guard;
    this.#replicas = replicas;
  }

  /**
   * Implements `Store.run`. The promise settles within `timeoutMs`, whatever the client does.
   *
   * Never uses EVAL. If the server does not have the script, the call loads it and sends EVALSHA again.
   *
   * @throws StoreError  see `Store.run`
   */
  readonly run: Store["run"] = (script, keys, args, timeoutMs) => {
    const client = this.#client;
    const guard = this.#guard;
    const sent = new SentScript(client, script, keys, args, timeoutMs, guard, this.#loadings);
    const text = guard === undefined ? script : guard.ready(sent);
    // Set even if the guard must ask first, because a renewal does not count until replicas have acknowledged it.
    if (this.#replicas !== undefined && script.renews === true) sent.replicas = shortened(this.#replicas, timeoutMs);
    if (text === undefined) {
      sent.ask();
    } else if (sent.replicas !== undefined) {
      sent.text = text;
      sent.send();
    } else {
      // In the common case, send the script directly from here, which keeps the code path and the stack trace short.
      sent.text = text;
      sent.wasSent = true;
      try {
        const free = script.isNative && client.free;
        const reply = free ? free(keys, args) : client.evalsha(text.sha1, keys, args);
        reply.then(sent.onReply, sent.onError);
      } catch (cause) {
        // Some clients throw instead of returning a rejected promise.
        sent.onError(cause);
      }
    }
    return sent.reply;
  };

  /** Implements `Store.releasesNatively`. */
  readonly releasesNatively = (): boolean => {
    this.#releases += 1;
    return this.#releases > RELEASES_BEFORE_NATIVE && this.#client.free !== undefined && this.#replicas === undefined;
  };
}

/** Loads in progress, by the hash of the script text. */
type Loadings = Map<string, Promise<Admission | undefined>>;

/** One script call in flight: sent, sent again once the script has been loaded, and finally answered or timed out. */
class SentScript implements ScriptCall {
  readonly reply: Promise<Reply>;
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly timeoutMs: number;
  /** The text to send: the script, or its form for one server. */
  text: ScriptText;
  wasSent = false;
  /** Set for a renewal that replicas must acknowledge. */
  replicas: Replicas | undefined;
  readonly #client: ScriptClient;
  readonly #guard: FailoverGuard | undefined;
  readonly #loadings: Loadings;
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
    loadings: Loadings,
  ) {
    this.#client = client;
    this.#loadings = loadings;
    this.script = script;
    this.keys = keys;
    this.args = args;
    this.timeoutMs = timeoutMs;
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
    if (this.script.isNative && refusesForGood(cause)) {
      client.free = undefined;
      this.onReply(0);
      return;
    }
    if (this.#loads < LOADS_MAX && isUnknownScript(cause)) {
      this.#loads += 1;
      this.#follow(client.isCluster === true ? this.#load() : this.#sharedLoad(), (error) =>
        error instanceof StoreError ? this.#unasked(error) : this.onError(error),
      );
      return;
    }
    if (isReadOnly(cause)) this.#guard?.serverMayHaveChanged();
    const failure = this.#closedAtStart
      ? { mayHaveRun: false, transient: false, cause }
      : failureOf(cause, client.losses() !== this.#lossesAtStart, client.isCluster);
    const transient = failure.transient && !client.isClosed();
    const refused = { source: this.text.source, keys: this.keys, channels: channelsOf(this.script, this.args) };
    this.#fail({ ...failure, transient, missingPermission: missingPermission(cause, refused) });
  };

  readonly send = (): void => {
    // Send nothing after the deadline, because the caller may already have given up the lock.
    if (this.#isSettled) return;
    this.wasSent = true;
    try {
      this.#sent().then(this.onReply, this.onError);
    } catch (cause) {
      this.onError(cause);
    }
  };

  /** Makes the guard ask the server whether it may grant. */
  ask(): void {
    const guard = this.#guard as FailoverGuard;
    this.#follow(guard.ask(this), this.#unasked);
  }

  #sent(): Promise<unknown> {
    const { replicas, text } = this;
    const client = this.#client;
    if (replicas === undefined || client.acknowledged === undefined) {
      return client.evalsha(text.sha1, this.keys, this.args);
    }
    return client
      .acknowledged(text.sha1, this.keys, this.args, replicas)
      .then(([reply, count]) => enough(reply, Number(toItem(count)), replicas));
  }

  /**
   * Waits for another call that is already loading the same script, or loads it. After a restart, all concurrent calls
   * need the same script, and loading it once is enough.
   */
  #sharedLoad(): Promise<Admission | undefined> {
    const loadings = this.#loadings;
    const { sha1 } = this.text;
    const other = loadings.get(sha1);
    // If the other call fails or times out, this call loads the script itself, because it can still succeed.
    if (other !== undefined) return other.catch(() => (this.#isSettled ? undefined : this.#load()));
    const loading = Promise.race([this.#load(), this.reply.then(() => undefined)]).finally(() => loadings.delete(sha1));
    loadings.set(sha1, loading);
    return loading;
  }

  /** Loads a script that the server does not know. A script that grants is loaded only via the guard. */
  async #load(): Promise<Admission | undefined> {
    const { script, text } = this;
    const send = ({ source }: ScriptText): Promise<unknown> => this.#client.load(source, this.keys, this.#loads);
    if (this.#guard !== undefined && script.grants === true && text !== script.withoutGrant) {
      return this.#guard.load(this, send, this.#loads);
    }
    await send(text);
    return { text };
  }

  /**
   * Continues as the guard decides. If the connection was lost meanwhile, the answer does not count and the guard asks
   * again.
   */
  #follow(asked: Promise<Admission | undefined>, onError: (error: unknown) => void): void {
    asked.then((admission) => {
      if (this.#isSettled) return;
      if (admission !== undefined) {
        this.#proceed(admission);
        return;
      }
      const ready = this.#guard?.ready(this);
      if (ready === undefined) {
        this.ask();
        return;
      }
      this.text = ready;
      this.send();
    }, onError);
  }

  #proceed(admission: Admission): void {
    const { grants, withoutGrant } = this.script;
    if ("text" in admission) this.text = admission.text;
    else if (grants === true && withoutGrant !== undefined) this.text = withoutGrant;
    else if (grants === true) {
      this.#refuse(quietFailure(admission));
      return;
    }
    this.send();
  }

  readonly #unasked = (error: unknown): void => {
    const isKnown = error instanceof StoreError;
    this.#refuse({
      mayHaveRun: false,
      transient: !isKnown || error.transient,
      cause: isKnown ? error.cause : error,
      missingPermission: isKnown ? error.missingPermission : undefined,
    });
  };

  /**
   * Rejects a call that the guard refused. An earlier attempt may still have run, if it was sent and the client resent
   * it.
   */
  #refuse(failure: StoreFailure): void {
    this.#fail({ ...failure, mayHaveRun: this.wasSent && this.#client.losses() !== this.#lossesAtStart });
  }

  #timeUp(): void {
    if (this.#isSettled) return;
    const noConnection = this.#client.noConnection?.();
    const why = noConnection === undefined ? "" : `: there is no connection to ${noConnection}`;
    const cause = noReply(this.#client, `no reply within ${this.timeoutMs} ms${why}`);
    this.#fail({ mayHaveRun: this.wasSent, transient: true, cause });
  }

  #fail(failure: StoreFailure): void {
    if (this.#settle()) this.#reject(new StoreError(this.script.name, failure));
  }

  /** @returns false if the call was already settled */
  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    return true;
  }
}

/**
 * Converts the replies of DELIFEQ and EXISTS to a reply of `mutex/delete`. If EXISTS fails, assumes that the queue is
 * not empty.
 */
export async function freed(deleted: Promise<unknown>, isQueued: Promise<unknown>): Promise<number> {
  const queued = isQueued.catch(() => 1);
  return Number(await deleted) && Number(await queued) + 1;
}

/** After this many consecutive calls without a reply, errors include advice. */
const MANY_UNANSWERED = 3;

function noReply(client: ScriptClient, message: string, cause?: unknown): AdvisedCause {
  const count = (client.unanswered ?? 0) + 1;
  client.unanswered = count;
  // Without a connection, there is no dead connection to replace, so give no advice.
  const cure = count >= MANY_UNANSWERED && client.noConnection?.() === undefined ? client.cure?.() : undefined;
  return new AdvisedCause(message, { cause, advice: cure && adviceOf(count, cure) });
}

/** Adds advice to the error if the server forbids a command that the script calls, or cannot run the scripts at all. */
function explained(cause: unknown, source: string): unknown {
  const command = forbiddenCommand(cause, source);
  const advice =
    command === undefined
      ? lackOf(cause)
      : `Holdfast needs ${command} in scripts, and this server does not allow it (docs/hosting.md).`;
  if (advice === undefined) return cause;
  return new AdvisedCause(messageOf(cause), { cause, advice });
}

function adviceOf(count: number, cure: string): string {
  return `The last ${count} commands got no reply. If the server is up, the connection is dead: ${cure} (docs/half-open-connections.md).`;
}

/** The lease length that a call passes to the server, in ms; 0 if it passes none. */
export function leaseOf({ script, args }: ScriptCall): number {
  const at = script.args.indexOf("leaseMs");
  return at < 0 ? 0 : Number(args[at]);
}

/** The channels that a script may publish to. The script appends a client id to an `inbox` argument. */
function channelsOf(script: Script, args: readonly (string | number)[]): string[] {
  return script.args.flatMap((name, at) => {
    if (name === "inbox") return [`${args[at]}*`];
    return name === "channel" ? [String(args[at])] : [];
  });
}

/** Shortens the wait for replicas to at most half of the timeout, so that the reply can still arrive in time. */
function shortened({ atLeast, timeoutMs: waitMs }: Replicas, timeoutMs: number): Replicas {
  return { atLeast, timeoutMs: Math.max(1, Math.min(waitMs, Math.floor(timeoutMs / 2))) };
}

/** Returns the reply. @throws Error  the lease was renewed, but too few replicas acknowledged it */
function enough(reply: unknown, count: number, { atLeast, timeoutMs }: Replicas): unknown {
  if (count >= atLeast || Number(toItem(reply)) !== 1) return reply;
  throw new Error(`only ${count} of ${atLeast} replicas acknowledged within ${timeoutMs} ms`);
}

/**
 * Formats a number for the server. From 10^21 on, JavaScript writes numbers with an exponent, which scripts do not
 * accept.
 */
export function toArgument(value: string | number): string {
  if (typeof value === "string") return value;
  return Number.isInteger(value) && Math.abs(value) >= 1e21 ? BigInt(value).toString() : String(value);
}

/**
 * Normalizes a reply. A client can be configured to return strings as bytes, and integers as strings, bigints or bytes.
 */
export function toReply(reply: unknown): Reply {
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

/**
 * The API of redlock 5 on its keys and values, so that original instances and instances of this package exclude each
 * other.
 *
 * Unlike the original, it wakes waiters, checks the validity of a lock on two clocks, limits the time of every
 * attempt, and fails early if further attempts cannot help. docs/adr/142-redlock-compat.md lists all differences.
 */
import { createHash, randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { mappedKeys, show } from "holdfast/internal";
import { type Ballot, ballot, type Operation, quorumOf } from "./ballot.js";
import { ExecutionError } from "./errors.js";
import { redlockCompatLockAcquire, redlockCompatLockExtend, redlockCompatLockRelease } from "./generated/lock.js";
import { attemptsOf, merged, pauseOf, type Settings } from "./settings.js";
import { after, type Deadline, deadlineOf, msLeft } from "./time.js";
import type { Client, ExecutionResult, ExecutionStats } from "./votes.js";
import { type Waiter, wakesOf } from "./wakes.js";

/** How long a fence outlives its lock, in ms; see docs/adr/006. */
const FENCE_MS = 600_000;
/** How long the release of a failed acquire, or of an expired lock, waits for each server, in ms. */
const CLEANUP_MS = 1_000;
/** Maximum number of attempts that a lock or an error keeps. An acquire without a limit may make any number of them. */
const MOST_ATTEMPTS = 1_000;
const NO_QUORUM = "The operation was unable to achieve a quorum during its retry window.";

/** The signal of `using`. It aborts when the lock may have ended or is lost; `error` is then the reason. */
export type RedlockAbortSignal = AbortSignal & {
  error?: Error;
};

/** Deadlines of the locks that this process has acquired or extended. Other locks have only `expiration`. */
const deadlines = new WeakMap<Lock, Deadline>();
/** Errors that say that a majority of the servers does not have the lock. */
const losses = new WeakSet<Error>();

/**
 * An acquired lock. It is no longer usable after `release` or `extend`; `extend` returns the lock that replaces it.
 */
export class Lock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** The random text stored under each resource. */
  readonly value: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  /** When the lock's validity ends, in ms since 1970; 0 after it has ended. */
  expiration: number;
  /**
   * Increases with every lock that this package grants on one of the resources, so that a protected resource can
   * refuse a late holder. Undefined with several servers, with custom scripts, if the user may not access the token
   * keys, and on a cluster for a name with braces that are not a hash tag.
   */
  readonly token?: number;

  constructor(
    redlock: Redlock,
    resources: string[],
    value: string,
    attempts: ReadonlyArray<Promise<ExecutionStats>>,
    expiration: number,
    token?: number,
  ) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
    this.expiration = expiration;
    if (token !== undefined) this.token = token;
  }

  /** Same as `Redlock.release`. */
  async release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /** Same as `Redlock.extend`. */
  async extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}

/** The text of a script and its SHA-1. */
interface Script {
  value: string;
  hash: string;
}

/** A custom script, or a function that changes the default. */
type ScriptOption = string | ((script: string) => string);

/**
 * Locks resources on one server, on a majority of several servers, or on a cluster.
 *
 * It emits `error` for each vote against an operation, even if the operation succeeds. No listener is needed.
 */
export default class Redlock extends EventEmitter {
  readonly clients: Set<Client>;
  readonly settings: Settings;
  readonly scripts: {
    readonly acquireScript: Script;
    readonly extendScript: Script;
    readonly releaseScript: Script;
  };

  /**
   * @param clients   one ioredis client for each independent server or cluster; you close them, or call `quit`
   * @param settings  defaults of all operations
   * @param scripts   custom scripts, or functions that change the defaults; then locks have no tokens
   * @throws Error    there is no client
   */
  constructor(
    clients: Iterable<Client>,
    settings: Partial<Settings> = {},
    scripts: {
      readonly acquireScript?: ScriptOption;
      readonly extendScript?: ScriptOption;
      readonly releaseScript?: ScriptOption;
    } = {},
  ) {
    super();
    // Without a listener, Node would throw each error that is emitted.
    this.on("error", () => {});
    this.clients = new Set(clients);
    if (this.clients.size === 0) throw new Error("Redlock must be instantiated with at least one redis client.");
    this.settings = merged(settings);
    this.scripts = {
      acquireScript: scriptOf(scripts.acquireScript, redlockCompatLockAcquire.source),
      extendScript: scriptOf(scripts.extendScript, redlockCompatLockExtend.source),
      releaseScript: scriptOf(scripts.releaseScript, redlockCompatLockRelease.source),
    };
  }

  /** Closes the clients, and with them the subscriber connections. */
  async quit(): Promise<void> {
    await Promise.all([...this.clients].map((client) => client.quit()));
  }

  /**
   * Locks all resources, or none.
   *
   * If they are locked, tries `retryCount` more times, with pauses of `retryDelay`. It also tries whenever another
   * instance of this package releases one of them; these attempts do not count.
   *
   * @param duration  how long the lock lasts, in ms, a whole number
   * @throws ExecutionError  no attempt got a majority; nothing is locked, except on servers that did not reply
   */
  async acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration);
    const used = merged(settings, this.settings);
    const operation = operationOf(this, this.scripts.acquireScript, resources, duration);
    const attempts: Promise<ExecutionStats>[] = [];
    const most = attemptsOf(used);
    const undone = new Set<Promise<void>>();
    let waiter: Waiter | undefined;

    // Each attempt has its own value, so that the release of a failed one cannot undo a vote of a later one.
    const attempt = async (isCounted: boolean): Promise<Lock | undefined> => {
      const value = randomBytes(16).toString("hex");
      const deadline = deadlineOf(duration, used.driftFactor);
      const result = await send(this, { ...operation, args: [value, duration], timeoutMs: Math.max(1, duration) });
      // An attempt caused by a message is reported only if it succeeds, because it is not one of those that
      // `retryCount` allows.
      if (isCounted || result.passed) keep(attempts, result);
      if (result.passed && msLeft(deadline) > 0)
        return lockOf(this, resources, value, attempts, deadline, result.token);
      // The only server has refused, so there is nothing to undo.
      if (this.clients.size === 1 && result.refused) return undefined;
      // A minority of granted votes would keep other callers from a majority.
      const undoing = undo(this, operation, value, result).finally(() => undone.delete(undoing));
      undone.add(undoing);
      return undefined;
    };

    try {
      for (let count = 1; ; count += 1) {
        let lock = await attempt(true);
        if (lock !== undefined) return lock;
        if (count >= most) {
          await Promise.all(undone);
          throw new ExecutionError(NO_QUORUM, attempts);
        }
        waiter ??= wakesOf(this.clients).join(channelsOf(this, operation.resources));
        const until = performance.now() + pauseOf(used);
        // A wake at the end of the pause starts no extra attempt, because the next counted one follows anyway.
        while ((await waiter.sleep(until - performance.now())) && performance.now() < until) {
          lock = await attempt(false);
          if (lock !== undefined) return lock;
        }
      }
    } finally {
      waiter?.leave();
    }
  }

  /**
   * Releases the resources.
   *
   * @throws ExecutionError  a majority no longer had the lock, which is not retried; or a majority did not reply, and
   * the lock expires on its own
   */
  async release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult> {
    const used = merged(settings, this.settings);
    const leftMs = leftOf(lock);
    lock.expiration = 0;
    const operation = operationOf(this, this.scripts.releaseScript, lock.resources, 0);
    const args = [lock.value, channelsOf(this, operation.resources).join(" ")];
    const attempts: Promise<ExecutionStats>[] = [];
    for (let count = 1; ; count += 1) {
      const result = await send(this, { ...operation, args, timeoutMs: Math.max(CLEANUP_MS, leftMs) });
      keep(attempts, result);
      if (result.passed) return { attempts };
      if (result.refused || count >= attemptsOf(used)) throw failure(attempts, result);
      await sleep(pauseOf(used));
    }
  }

  /**
   * Extends a lock to `duration` from now.
   *
   * @returns the lock that replaces `existing`
   * @throws ExecutionError  the lock has ended, or it ended before a majority extended it
   */
  async extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration);
    const used = merged(settings, this.settings);
    if (leftOf(existing) <= 0) throw new ExecutionError("Cannot extend an already-expired lock.", []);
    const operation = operationOf(this, this.scripts.extendScript, existing.resources, duration);
    const args = [existing.value, duration];
    const attempts: Promise<ExecutionStats>[] = [];
    for (let count = 1; ; count += 1) {
      const deadline = deadlineOf(duration, used.driftFactor);
      const result = await send(this, { ...operation, args, timeoutMs: Math.max(1, leftOf(existing)) });
      keep(attempts, result);
      if (result.passed && msLeft(deadline) > 0) {
        existing.expiration = 0;
        return lockOf(this, existing.resources, existing.value, attempts, deadline, existing.token);
      }
      if (result.refused || count >= attemptsOf(used)) throw failure(attempts, result);
      await sleep(Math.min(pauseOf(used), leftOf(existing)));
      if (leftOf(existing) <= 0) throw failure(attempts, result);
    }
  }

  /**
   * Runs `routine` while the resources are locked, extends the lock in time, and releases it afterward.
   *
   * The signal aborts at the latest when the lock's validity is over, whether or not servers reply.
   *
   * @returns the routine's value
   * @throws the routine's error, even if the release also fails
   * @throws ExecutionError  the resources could not be locked, or were lost while the routine ran
   */
  async using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine?: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    routine: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | ((signal: RedlockAbortSignal) => Promise<T>),
    optionalRoutine?: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T> {
    checkDuration(duration);
    const given = typeof settingsOrRoutine === "function" ? undefined : settingsOrRoutine;
    const used = merged(given, this.settings);
    const routine = optionalRoutine ?? settingsOrRoutine;
    if (typeof routine !== "function") throw new Error("INVARIANT: routine is not a function.");
    if (used.automaticExtensionThreshold > duration - 100) {
      throw new Error(
        "A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.",
      );
    }

    const kept = keepExtended(await this.acquire(resources, duration, used), duration, used);
    let value: T;
    try {
      value = await routine(kept.signal);
    } catch (error) {
      await kept
        .stop()
        .release()
        .catch(() => {});
      throw error;
    }
    const lock = kept.stop();
    const wasHeld = !kept.signal.aborted && leftOf(lock) > 0;
    try {
      await lock.release();
    } catch (error) {
      // The work is done, and the lock was held the whole time. If the release could not be sent, the lock expires on
      // its own.
      if (!wasHeld || losses.has(error as Error)) throw error;
    }
    return value;
  }
}

/** A lock that is extended when little of its validity is left. */
interface Kept {
  readonly signal: RedlockAbortSignal;
  /** Stops extending the lock. Returns the current lock. */
  stop(): Lock;
}

function keepExtended(acquired: Lock, duration: number, settings: Settings): Kept {
  const controller = new AbortController();
  const signal: RedlockAbortSignal = controller.signal;
  let lock = acquired;
  let isOver = false;
  let cancelExtension = (): void => {};
  let cancelDeadline = (): void => {};

  const stop = (): Lock => {
    isOver = true;
    cancelExtension();
    cancelDeadline();
    return lock;
  };
  const lose = (error: unknown): void => {
    if (isOver) return;
    stop();
    signal.error = error instanceof Error ? error : new Error(String(error));
    controller.abort();
  };
  const watch = (): void => {
    cancelDeadline();
    cancelDeadline = after(leftOf(lock), () => {
      // Timers may fire a little early.
      if (leftOf(lock) > 0) watch();
      else lose(new ExecutionError("The lock could not be extended before it expired.", []));
    });
    cancelExtension = after(leftOf(lock) - settings.automaticExtensionThreshold, () => void extend());
  };
  const extend = async (): Promise<void> => {
    let longest = 0;
    while (!isOver) {
      try {
        // One attempt at a time: an extension may take until the deadline, whatever the retry settings are.
        const next = await lock.redlock.extend(lock, duration, { ...settings, retryCount: 0 });
        if (isOver) return;
        lock = next;
        watch();
        return;
      } catch (error) {
        if (losses.has(error as Error) || leftOf(lock) <= 0) {
          lose(error);
          return;
        }
        // At least three attempts in the remaining time, never directly after each other.
        longest = longest === 0 ? leftOf(lock) / 4 : longest;
        await sleep(Math.max(10, Math.min(settings.retryDelay, longest)));
      }
    }
  };
  watch();
  return { signal, stop };
}

/** How long a lock may still be trusted, in ms. */
function leftOf(lock: Lock): number {
  const left = lock.expiration - Date.now();
  const deadline = deadlines.get(lock);
  return deadline === undefined ? left : Math.min(left, msLeft(deadline));
}

function lockOf(
  redlock: Redlock,
  resources: string[],
  value: string,
  attempts: ReadonlyArray<Promise<ExecutionStats>>,
  deadline: Deadline,
  token: number | undefined,
): Lock {
  const lock = new Lock(redlock, resources, value, attempts, Math.floor(deadline.wallMs), token);
  deadlines.set(lock, deadline);
  return lock;
}

function checkDuration(duration: number): void {
  if (Math.floor(duration) !== duration) throw new Error("Duration must be an integer value in milliseconds.");
}

function scriptOf(option: ScriptOption | undefined, text: string): Script {
  const value = typeof option === "function" ? option(text) : typeof option === "string" ? option : text;
  return { value, hash: createHash("sha1").update(value).digest("hex") };
}

/** Whether locks of this Redlock have tokens. Custom scripts support only the keys and arguments of the original. */
function hasTokens({ clients, scripts: { acquireScript, extendScript, releaseScript } }: Redlock): boolean {
  return (
    clients.size === 1 &&
    acquireScript.value === redlockCompatLockAcquire.source &&
    extendScript.value === redlockCompatLockExtend.source &&
    releaseScript.value === redlockCompatLockRelease.source
  );
}

/**
 * Returns the operation that runs a script on resources, without its arguments. A resource that is named twice is
 * locked once.
 *
 * @throws ExecutionError  invalid resources: as in the original, each server votes against, and there is no retry
 */
function operationOf(
  redlock: Redlock,
  script: Script,
  named: readonly string[],
  durationMs: number,
): Omit<Operation, "args" | "timeoutMs"> {
  if (typeof (named as { length?: unknown } | null | undefined)?.length !== "number")
    throw notResources(redlock, named);
  const resources = [...new Set(named)];
  const fences = hasTokens(redlock) ? resources.map((resource) => fenceOf(redlock, resource)) : [];
  return { script, resources, fences, fenceMs: durationMs + FENCE_MS };
}

function notResources(redlock: Redlock, named: unknown): ExecutionError {
  const error = new TypeError(`resources must be an array of names; got ${show(named)}`);
  const { clients } = redlock;
  const votesAgainst = new Map([...clients].map((client) => [client, error]));
  for (const _ of clients) redlock.emit("error", error);
  const stats = {
    membershipSize: clients.size,
    quorumSize: quorumOf(clients),
    votesFor: new Set<Client>(),
    votesAgainst,
  };
  return new ExecutionError(NO_QUORUM, [Promise.resolve(stats)]);
}

/** The prefix that the clients add to keys. Channels get it here, because clients do not add it to them. */
function keyPrefixOf({ clients }: Redlock): string {
  const [client] = clients;
  const prefix: unknown = (client?.options as { keyPrefix?: unknown } | undefined)?.keyPrefix;
  return typeof prefix === "string" ? prefix : "";
}

/** The key of a resource's last token. It is in the resource's slot, whatever prefix the client adds to both keys. */
function fenceOf(redlock: Redlock, resource: string): string {
  return `${mappedKeys("hf", "redlock-compat", `${keyPrefixOf(redlock)}${resource}`).base}:fence`;
}

/** The channels of resources. They contain no spaces, because the script gets them separated by spaces. */
function channelsOf(redlock: Redlock, resources: readonly string[]): string[] {
  const prefix = keyPrefixOf(redlock);
  return resources.map((resource) => `hf:redlock-compat:${withoutSpaces(`${prefix}${resource}`)}`);
}

/** Lua counts only ASCII characters as spaces. */
function withoutSpaces(text: string): string {
  return text.replace(/[%\t-\r ]/g, (sign) => encodeURIComponent(sign));
}

function send(redlock: Redlock, operation: Operation): Promise<Ballot> {
  return ballot(redlock.clients, operation, (error) => void redlock.emit("error", error));
}

/**
 * Releases what a failed attempt may have locked, on each server after its reply to that attempt. Never rejects and
 * emits nothing, because there may be nothing to release. It notifies no waiters, because the failed acquire would
 * wake itself repeatedly.
 *
 * Resolves when a majority and the servers that granted have replied. The others, which may be down, get the release
 * later.
 */
async function undo(
  redlock: Redlock,
  operation: Omit<Operation, "args" | "timeoutMs">,
  value: string,
  { granted, replies }: Ballot,
): Promise<void> {
  const release = { ...operation, script: redlock.scripts.releaseScript, args: [value, ""], timeoutMs: CLEANUP_MS };
  const { votes } = await ballot(redlock.clients, release, () => {}, replies);
  await Promise.all([...granted].map(async (client) => votes.get(client)));
}

function keep(attempts: Promise<ExecutionStats>[], { stats }: Ballot): void {
  attempts.push(stats);
  if (attempts.length > MOST_ATTEMPTS) void attempts.shift();
}

function failure(attempts: ReadonlyArray<Promise<ExecutionStats>>, { refused }: Ballot): ExecutionError {
  const error = new ExecutionError(NO_QUORUM, attempts);
  if (refused) losses.add(error);
  return error;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    after(ms, resolve);
  });
}

import type { Holder } from "../core/errors.js";
import { describeHolder } from "../core/inspection.js";
import { checkValue, show } from "../core/keys.js";
import type { ReleaseOutcome } from "../core/lease.js";
import { Lock } from "../core/lock.js";
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  checkWhole,
  NONE,
  type ResolvedOptions,
  type RunOptions,
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import type { Session } from "../core/session.js";
import { delay } from "./delay.js";
import { Leadership } from "./leadership.js";
import { observe } from "./observer.js";
import { type ElectionHealth, healthOf, officeOf } from "./office.js";
import type { ElectionProtocol, LeaderRecord } from "./protocol.js";

/** Options of `campaign`. */
export interface CampaignOptions extends AcquireOptions {
  /**
   * Upper limit of a random delay before each campaign. The delay counts toward `waitMs`. Without a delay, the process
   * that starts fastest is always elected when all processes restart. A longer delay spreads leadership more evenly;
   * with a shorter one, a leader is elected sooner. Milliseconds, 0 or more.
   * @default 0
   */
  readonly delayMs?: number | undefined;
}

/** Options of `acquire` and `run`. */
export interface ElectionOptions extends CampaignOptions {
  /** The leader's value, which observers see. At most 65,536 bytes. @default "" */
  readonly value?: string | undefined;
}

/** Options of `tryAcquire`. */
export interface ElectionTryOptions extends TryAcquireOptions {
  /** The leader's value, which observers see. At most 65,536 bytes. @default "" */
  readonly value?: string | undefined;
}

const AFTER_LEASE_MS = 5;

/** The current leader and its value. */
export interface Leader extends Holder {
  /** The value that the leader proclaimed, such as its address. */
  readonly value: string;
  /** Sequence number of the leadership. Increases with each new leader. */
  readonly term: number;
  /**
   * Number of terms after the first one on record. The server forgets the record 10 minutes after the last lease ends.
   */
  readonly transitions: number;
}

/**
 * Leader election: at most one leader at a time among all processes. Every process can read and observe the leader's
 * value.
 *
 * An election is a mutex whose holder proclaims a value. Candidates queue, and the next one leads as soon as the leader
 * resigns or its lease ends. A leader must stop leading when `leadership.signal` aborts, and must pass
 * `leadership.term` to every resource that has to refuse former leaders. Others see the winner as the leader once its
 * value is stored, which takes a second round trip before `campaign` resolves.
 *
 * The API follows etcd's election. Unlike in etcd, candidates are notified by a message and do not watch each other.
 *
 * @example
 * const election = holdfast.election("feed");
 * await using leadership = await election.campaign("10.0.0.5:8080", { waitMs: Infinity });
 * while (!leadership.signal.aborted) await pullFeed(leadership.term);
 *
 * // in any other process:
 * for await (const leader of election.observe()) useFeedOf(leader?.value);
 */
export class Election extends Lock<Leadership> {
  readonly #election: ElectionProtocol;

  /** @internal */
  constructor(session: Session, protocol: ElectionProtocol, defaults: ResolvedOptions, adoptedValue: string) {
    super(session, protocol, defaults, (hold) => new Leadership(session, protocol, hold, adoptedValue));
    this.#election = protocol;
  }

  /**
   * Waits until this candidate is elected, for at most `waitMs`. Takes two round trips if there is no leader.
   *
   * @param value  the value of the leader, which observers see; at most 65,536 bytes
   * @throws AcquireTimeoutError  not elected within `waitMs`; nothing is held. The error names the leader
   * @throws LeaseLostError  elected, but the lease was lost before the value was stored
   * @throws TypeError, RangeError  invalid value or option; nothing was sent
   * @throws the other errors of `Lock.acquire`
   */
  async campaign(value: string, options: CampaignOptions = NONE): Promise<Leadership> {
    return this.#campaign(value, options, [...ACQUIRE_OPTIONS, "delayMs"]);
  }

  async #campaign(value: string, options: CampaignOptions, names: readonly string[]): Promise<Leadership> {
    checkValue(value);
    checkObject(options);
    const { delayMs = 0, ...rest } = options;
    checkDelay(delayMs);
    const { waitMs, signal } = resolve(rest, this.defaults, names);
    const delayedMs = this.session.runtime.random() * Math.min(delayMs, waitMs);
    if (delayedMs > 0) await delay(this.session, this.name, delayedMs, signal);
    const left = delayedMs > 0 && waitMs !== Infinity ? { waitMs: waitMs - delayedMs } : {};
    return this.#takeOffice(await super.acquire({ ...rest, ...left }), value);
  }

  /** Like `campaign`, with the value as an option. @throws as `campaign` */
  override async acquire(options: ElectionOptions = NONE): Promise<Leadership> {
    checkObject(options);
    const { value = "", ...rest } = options;
    return this.#campaign(value, rest, [...ACQUIRE_OPTIONS, "value", "delayMs"]);
  }

  /**
   * Becomes the leader if there is none. Takes two round trips, or one if there is a leader.
   *
   * @returns null if there is a leader or a waiting candidate
   * @throws as `campaign`, but never AcquireTimeoutError
   */
  override async tryAcquire(options: ElectionTryOptions = NONE): Promise<Leadership | null> {
    checkObject(options);
    const { value = "", ...rest } = options;
    checkValue(value);
    resolve(rest, this.defaults, [...ACQUIRE_OPTIONS, "value"]);
    const leadership = await super.tryAcquire(rest);
    return leadership && this.#takeOffice(leadership, value);
  }

  /**
   * Leads while `work` runs, like `Lock.run`. Takes the options of `acquire`.
   *
   * @throws as `Lock.run`, and as `acquire`
   */
  override run<Result>(
    work: (leadership: Leadership) => Result | Promise<Result>,
    options: ElectionOptions & RunOptions = NONE,
  ): Promise<Result> {
    return super.run(work, options);
  }

  /**
   * Resigns a leadership, like `leadership.release()`.
   *
   * Without an argument, resigns the leadership that `lead` (from `@holdfast/recipes`) holds in this Holdfast instance:
   * aborts its signal, waits until its work has settled, then releases. Do not call it from within that work, because the work
   * would wait for itself.
   *
   * @returns undefined if there was nothing to release
   * @throws as `Lease.release`
   */
  async resign(leadership: Leadership): Promise<ReleaseOutcome>;
  /** Resigns the leadership that `lead` holds in this Holdfast instance. @returns undefined if there is none */
  async resign(): Promise<ReleaseOutcome | undefined>;
  async resign(leadership?: Leadership): Promise<ReleaseOutcome | undefined> {
    return leadership === undefined
      ? officeOf(this.session, this.protocol.key)?.resign()
      : this.#own(leadership).release();
  }

  /**
   * Changes the leader's value, like `leadership.proclaim(value)`. Without a `leadership` argument, uses the leadership
   * that `lead` (from `@holdfast/recipes`) holds in this Holdfast instance.
   *
   * @throws as `Leadership.proclaim`
   */
  async proclaim(leadership: Leadership, value: string): Promise<void>;
  /** Changes the leader's value, using the leadership that `lead` holds in this Holdfast instance. */
  async proclaim(value: string): Promise<void>;
  async proclaim(leadership: Leadership | string, value?: string): Promise<void> {
    // Pass `value` on even if it is missing, so that the error names it.
    if (typeof leadership !== "string") return this.#own(leadership).proclaim(value as string);
    return this.#own(officeOf(this.session, this.protocol.key)?.leadership).proclaim(leadership);
  }

  /**
   * Reports the state of this process in the election, without asking the server. Use it for liveness probes that
   * restart a hung process.
   *
   * @param withinMs  how long a leader may go without a confirmation from the server; also how long work may continue
   *                  after the leadership is lost. Whole milliseconds, 0 to 31,536,000,000
   * @throws TypeError, RangeError  invalid `withinMs`
   */
  health(withinMs: number): ElectionHealth {
    checkWhole("withinMs", withinMs, 0, 31_536_000_000);
    return healthOf(this.session, this.protocol.key, withinMs);
  }

  /** Returns the current leader, or null if there is none. Takes two round trips. @throws StoreError, ClosedError */
  async leader(): Promise<Leader | null> {
    this.session.assertOpen(this.name);
    return this.#describe(await this.#election.leader(this.session.commandTimeoutMs));
  }

  /**
   * Observes the leader. Yields the current leader first, then each change; null means that there is no leader.
   *
   * Changes are pushed. The state is read again after a lost connection and just after the leader's lease is due to
   * end, so the latest change is never missed. A reader that is slower than the changes gets the newest state and
   * misses the states in between. To stop, leave the loop, call `return()`, or abort `signal`; this also ends a pending
   * `next()`. When this Holdfast instance is closed, the loop ends without an error.
   *
   * @throws the signal's reason, when it aborts; to stop without an error, leave the loop
   * @throws ClosedError  this Holdfast instance was closed before the loop began
   * @throws StoreError   a failure that retrying cannot fix; after other failures, the observer waits for the server
   * @throws TypeError    invalid option
   */
  observe(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<Leader | null, void, undefined> {
    const election = this.#election;
    let lastTerm = 0;
    const followed = {
      session: this.session,
      name: election.name,
      channel: election.channel,
      read: async (timeoutMs: number) => {
        const is = await election.leader(timeoutMs);
        // A server that restarted with old data may report a former leader. Treat that as no leader.
        if (is !== undefined && is.term < lastTerm) return undefined;
        lastTerm = is?.term ?? lastTerm;
        return is;
      },
      isNews: (is: LeaderRecord | undefined, last: LeaderRecord | undefined) => !isSame(is, last),
      // Wait a little longer than the lease, so that it has ended on the server by the time of the next read.
      changesInMs: (is: LeaderRecord | undefined) => (is === undefined ? Infinity : is.leaseLeftMs + AFTER_LEASE_MS),
    };
    return observe(followed, options, (record) => this.#describe(record));
  }

  async #takeOffice(leadership: Leadership, value: string): Promise<Leadership> {
    try {
      await leadership.proclaim(value);
      return leadership;
    } catch (error) {
      // The server may not be answering, so do not make the caller wait for the release.
      void leadership.release().catch(() => {});
      throw error;
    }
  }

  async #describe(record: LeaderRecord | undefined): Promise<Leader | null> {
    if (record === undefined) return null;
    const { value, term, terms, owner, leaseLeftMs } = record;
    const holder = await describeHolder(this.session, { owner, token: term, leaseLeftMs });
    return { ...holder, value, term, transitions: terms - 1 };
  }

  #own(leadership: Leadership | undefined): Leadership {
    if (!(leadership instanceof Leadership) || leadership.name !== this.name) {
      throw new TypeError(`leadership must be from the election ${show(this.name)}; got ${show(leadership)}`);
    }
    return leadership;
  }
}

function isSame(a: LeaderRecord | undefined, b: LeaderRecord | undefined): boolean {
  return a?.term === b?.term && a?.owner === b?.owner && a?.value === b?.value;
}

function checkObject(options: unknown): void {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object; got ${show(options)}`);
  }
}

function checkDelay(delayMs: unknown): void {
  if (typeof delayMs !== "number")
    throw new TypeError(`delayMs must be a number of milliseconds; got ${show(delayMs)}`);
  if (!(delayMs >= 0 && delayMs < Infinity))
    throw new RangeError(`delayMs must be finite and at least 0; got ${delayMs}`);
}

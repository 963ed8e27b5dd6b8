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
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import type { Session } from "../core/session.js";
import { delay } from "./delay.js";
import { Leadership } from "./leadership.js";
import { observe } from "./observer.js";
import { type ElectionHealth, healthOf, officeOf } from "./office.js";
import type { ElectionProtocol, LeaderRecord } from "./protocol.js";

/** How to campaign. */
export interface CampaignOptions extends AcquireOptions {
  /**
   * Longest random delay before standing, drawn anew each time, as part of `waitMs`: so that a restart of all
   * processes does not always elect the one that starts fastest. Longer spreads more evenly, shorter elects sooner.
   * Milliseconds, 0 or more.
   * @default 0
   */
  readonly delayMs?: number | undefined;
}

/** How to campaign through the verbs that all locks have. */
export interface ElectionOptions extends CampaignOptions {
  /** What the leader stands for, at most 65 536 bytes. @default "" */
  readonly value?: string | undefined;
}

/** The same, without waiting. */
export interface ElectionTryOptions extends TryAcquireOptions {
  /** What the leader stands for, at most 65 536 bytes. @default "" */
  readonly value?: string | undefined;
}

const AFTER_LEASE_MS = 5;

/** Who leads, and what for. */
export interface Leader extends Holder {
  /** What the leader stands for, such as the address at which it is reached. */
  readonly value: string;
  /** Number of the leadership; rises with each new leader. */
  readonly term: number;
  /** How often a new term has begun since the first on record, which is forgotten 10 minutes after the last lease. */
  readonly transitions: number;
}

/**
 * At most one leader at a time among all processes, whose value everybody can see and follow.
 *
 * It is a mutex whose holder says something: candidates queue, and the next one leads as soon as the leader resigns,
 * or when its lease ends. A leader must stop leading when `leadership.signal` aborts, and hand `leadership.term` to
 * whatever must refuse a leader of the past. A winner leads, for others, from the moment its value is stored: that is
 * a second round trip, before `campaign` resolves.
 *
 * The verbs follow etcd's election; different is that candidates are told by a message and do not watch each other.
 */
export class Election extends Lock<Leadership> {
  readonly #election: ElectionProtocol;

  /** Elections come from the factory of a Holdfast. @internal */
  constructor(session: Session, protocol: ElectionProtocol, defaults: ResolvedOptions, adoptedValue: string) {
    super(session, protocol, defaults, (hold) => new Leadership(session, protocol, hold, adoptedValue));
    this.#election = protocol;
  }

  /**
   * Stands for election until it is won, or for `waitMs`. Two round trips if nobody leads.
   *
   * @param value  what the leader stands for, at most 65 536 bytes
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held; says who leads
   * @throws LeaseLostError  it won, and lost the lease before its value was stored
   * @throws as `acquire` otherwise
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

  /** As `campaign`, with the value among the options. */
  override async acquire(options: ElectionOptions = NONE): Promise<Leadership> {
    checkObject(options);
    const { value = "", ...rest } = options;
    return this.#campaign(value, rest, [...ACQUIRE_OPTIONS, "value", "delayMs"]);
  }

  /** Leads if nobody does. Two round trips, or one. @throws as `acquire`, but never for waiting */
  override async tryAcquire(options: ElectionTryOptions = NONE): Promise<Leadership | null> {
    checkObject(options);
    const { value = "", ...rest } = options;
    checkValue(value);
    resolve(rest, this.defaults, [...ACQUIRE_OPTIONS, "value"]);
    const leadership = await super.tryAcquire(rest);
    return leadership && this.#takeOffice(leadership, value);
  }

  /** Leads while `work` runs. See `Lock.run`; the options are those of `acquire`. */
  override run<Result>(
    work: (leadership: Leadership) => Result | Promise<Result>,
    options: ElectionOptions = NONE,
  ): Promise<Result> {
    return super.run(work, options);
  }

  /**
   * Stops leading, as `leadership.release()`. Without one it ends what `lead` of `holdfast/recipes` does in this Holdfast: aborts
   * the signal, waits until the work has settled, then releases; not from within that work, which would wait for itself.
   *
   * @returns undefined if there was nothing to release
   * @throws as `release`
   */
  async resign(leadership: Leadership): Promise<ReleaseOutcome>;
  async resign(): Promise<ReleaseOutcome | undefined>;
  async resign(leadership?: Leadership): Promise<ReleaseOutcome | undefined> {
    return leadership === undefined
      ? officeOf(this.session, this.protocol.key)?.resign()
      : this.#own(leadership).release();
  }

  /**
   * Changes what the leader stands for, as `leadership.proclaim(value)`. Without a leadership it is that of `lead` of
   * `holdfast/recipes` in this Holdfast.
   *
   * @throws as that
   */
  async proclaim(leadership: Leadership, value: string): Promise<void>;
  async proclaim(value: string): Promise<void>;
  async proclaim(leadership: Leadership | string, value?: string): Promise<void> {
    // What is left out is refused for what it is.
    if (typeof leadership !== "string") return this.#own(leadership).proclaim(value as string);
    return this.#own(officeOf(this.session, this.protocol.key)?.leadership).proclaim(leadership);
  }

  /**
   * How this process stands, without asking the server: for a probe that restarts what hangs.
   *
   * @param withinMs  how long it may be out of touch while it leads; also how long work may go on after its leadership. Whole
   *                  milliseconds, 0 to 31 536 000 000
   * @throws TypeError, RangeError  a wrong number
   */
  health(withinMs: number): ElectionHealth {
    checkWhole("withinMs", withinMs, 0, 31_536_000_000);
    return healthOf(this.session, this.protocol.key, withinMs);
  }

  /** Who leads now; null if nobody does. Two round trips. @throws StoreError, ClosedError */
  async leader(): Promise<Leader | null> {
    this.session.assertOpen(this.name);
    return this.#describe(await this.#election.leader(this.session.commandTimeoutMs));
  }

  /**
   * Follows who leads: the present state first, then each change as it comes; null when nobody does.
   *
   * Changes are pushed. After a lost connection, and when the leader's lease must be over, the state is read again,
   * so the last one is never missed. A reader that is slower than the changes gets the newest and misses those in
   * between. Leave the loop, call `return()`, or abort `signal`, to stop: a `next()` that waits ends too.
   *
   * @throws the signal's reason, when it aborts: to stop without an error, leave the loop
   * @throws ClosedError  this Holdfast was closed
   * @throws StoreError   the server will not answer; while it may, the observer waits
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
        // A server that came back with old data shows a leader of the past, which leads no longer.
        if (is !== undefined && is.term < lastTerm) return undefined;
        lastTerm = is?.term ?? lastTerm;
        return is;
      },
      isNews: (is: LeaderRecord | undefined, last: LeaderRecord | undefined) => !isSame(is, last),
      // The lease must be over on the server too when it asks at its end.
      changesInMs: (is: LeaderRecord | undefined) => (is === undefined ? Infinity : is.leaseLeftMs + AFTER_LEASE_MS),
    };
    return observe(followed, options, (record) => this.#describe(record));
  }

  async #takeOffice(leadership: Leadership, value: string): Promise<Leadership> {
    try {
      await leadership.proclaim(value);
      return leadership;
    } catch (error) {
      // The caller waits no longer for a server that has just not answered.
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
      throw new TypeError(`leadership must be one of the election ${show(this.name)}; got ${show(leadership)}`);
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
  if (!(delayMs >= 0 && delayMs < Infinity)) throw new RangeError(`delayMs must be 0 or more; got ${delayMs}`);
}

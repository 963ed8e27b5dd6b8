import type { Holdfast } from "holdfast";
import type { Filled } from "holdfast/internal";
import {
  checkLeaseMs,
  checkWhole,
  ForeignLock,
  type Hold,
  internalsOf,
  Lease,
  type ResolvedOptions,
  type Session,
  show,
  unknownOption,
} from "holdfast/internal";
import { checkDialect, keyOf, type TimestampDialect } from "./dialect.js";
import { TimestampProtocol } from "./protocol.js";
import { wireOf } from "./wire.js";

/** Options of `timestampLock`. They must be the same in all Holdfast clients that share the lock. */
export interface TimestampOptions {
  /**
   * Default lease of every acquire: how long a holder may rely on the lock between two renewals. A longer lease
   * survives longer pauses; a shorter lease frees the lock sooner after a crash. Whole milliseconds, 100 to
   * 31,536,000,000.
   * @default the `leaseMs` of the dialect
   */
  readonly leaseMs?: number | undefined;

  /**
   * Largest difference between the clocks of the other clients and that of the server. The value ends that much later
   * than the holder's lease. A larger value is safer, but blocks others for longer after a crash. A client whose clock
   * is further ahead takes over live locks. Whole milliseconds, 0 to 86,400,000; at least 1,000 if values count
   * seconds, because those are rounded. Has no effect if values are not times.
   * @default 1_000
   */
  readonly maxClockSkewMs?: number | undefined;

  /**
   * How long after the end of a value Holdfast takes the lock over. A larger value leaves more time to holders of the
   * other system whose clock is behind, or that overrun their lease. 0 is the rule of the other system. Has no effect
   * if values are not times. Whole milliseconds, 0 to 86,400,000.
   * @default 0
   */
  readonly takeoverMarginMs?: number | undefined;

  /**
   * Maximum number of requests of one acquire, including the first; `waitMs` also ends it. Requests caused by a release
   * message do not count. A whole number from 1 to 1,000,000,000, or Infinity.
   * @default Infinity
   */
  readonly attempts?: number | undefined;

  /**
   * Longest pause between two attempts. Waiters poll, because clients of the other system publish no releases. A longer
   * pause needs fewer requests; a shorter pause notices a release sooner. Whole milliseconds, 10 to 60,000.
   * @default 200
   */
  readonly retryDelayMs?: number | undefined;

  /**
   * Each pause is shortened by a random time, up to this long. A larger value keeps waiters from asking at the same
   * moment. Whole milliseconds, 0 to `retryDelayMs`.
   * @default three quarters of `retryDelayMs`
   */
  readonly retryJitterMs?: number | undefined;

  /**
   * Whether Holdfast clients notify each other of releases, on the channel `<prefix>:timestamp:<key>`. If false, they
   * discover releases only by polling.
   * @default true
   */
  readonly wake?: boolean | undefined;

  /**
   * What a release does if a client of the other system failed to take the lock, but has overwritten its value.
   * `"leave"` keeps that value, so the lock stays blocked for up to the lease of that client. `"delete"` frees the lock
   * immediately, and is safe only if no client of the other system overruns its own lease.
   * @default "leave"
   */
  readonly overwritten?: "leave" | "delete" | undefined;
}

/** Earliest first check of a grant, in ms. By that time, most clients that were too late have overwritten the value. */
const FIRST_CHECK_MIN_MS = 50;
/** Latest first check of a grant, in ms. */
const FIRST_CHECK_MAX_MS = 100;

/**
 * How often and how long Holdfast checks the value of a grant. Clients that came too late may overwrite it with one
 * that ends before Holdfast's lease.
 */
interface ValueChecks {
  readonly everyMs: number;
  readonly forMs: number;
}

/**
 * A lock that is shared with services in other languages, which use SETNX and store the end of the lock in its value.
 *
 * Among Holdfast clients it behaves like any mutex: one live lease, renewal, notification of loss, and rising tokens.
 * With other clients it is only as safe as their protocol. Holdfast cannot prevent the following:
 *
 * - A foreign client that overruns its lease deletes the lock of the next holder when it releases. `lease.signal`
 *   aborts at the next renewal.
 * - A foreign client whose clock is ahead by more than the lease takes over live locks.
 * - A lock that a foreign client leaves behind blocks everyone until it expires.
 *
 * Holdfast reports the cases that it can detect on the diagnostics channel `holdfast:peer`. The token orders only
 * holders of Holdfast. To protect the resource from other clients as well, give it its own version number.
 *
 * `forceRelease` works for holders of both systems; `inspect` identifies a foreign holder by the value of the key. If
 * it shows a Holdfast holder and a foreign value, it cannot tell which of the two has the lock. Release the foreign
 * value first, then the Holdfast holder.
 *
 * Not reentrant. No order among processes. Leases cannot be exported.
 *
 * Algorithm: SETNX with a deadline in the value, as in several published articles. Each step is one script that uses
 * the server's clock and stores the owner in a second key (docs/interop.md).
 */
export class TimestampLock extends ForeignLock {
  /** The key on the server. It must equal the key that the other clients use. */
  readonly key: string;
  readonly #protocol: TimestampProtocol;
  readonly #checks: ValueChecks | undefined;

  /** @internal */
  constructor(parts: {
    readonly session: Session;
    readonly protocol: TimestampProtocol;
    readonly defaults: ResolvedOptions;
    readonly options: Filled<TimestampOptions>;
    readonly channel: string;
    readonly checks: ValueChecks | undefined;
  }) {
    const { session, protocol, defaults, options, channel } = parts;
    super({
      session,
      protocol,
      defaults,
      make: (held) => new Lease(held),
      pauses: { delayMs: options.retryDelayMs, jitterMs: options.retryJitterMs },
      attempts: options.attempts,
      line: protocol.key,
      listen:
        channel === "" ? undefined : (_claim, onNews) => session.store.inbox(channel, onNews, session.commandTimeoutMs),
    });
    this.key = protocol.key;
    this.#protocol = protocol;
    this.#checks = parts.checks;
  }

  /** Schedules the first check of the value. @internal */
  protected override begun(hold: Hold): void {
    if (this.#checks === undefined) return;
    const { runtime } = this.session;
    const inMs = FIRST_CHECK_MIN_MS + runtime.random() * (FIRST_CHECK_MAX_MS - FIRST_CHECK_MIN_MS);
    this.#scheduleCheck(hold, inMs, this.#checks, runtime.monotonicMs() + this.#checks.forMs);
  }

  #scheduleCheck(hold: Hold, inMs: number, checks: ValueChecks, untilMs: number): void {
    this.session.runtime.startTimer(() => void this.#checkValue(hold, checks, untilMs), inMs, false);
  }

  /** Restores an overwritten value, or discovers that the lock is lost. Does not prolong the lease. */
  async #checkValue(hold: Hold, checks: ValueChecks, untilMs: number): Promise<void> {
    if (hold.validForMs() <= 0) return;
    // A lost reply does not mean a lost lock: the next check or renewal finds out.
    const outcome = await this.#protocol.extend(hold.grant, 1, this.session.commandTimeoutMs).catch(() => "extended");
    if (outcome !== "extended") hold.lose(hold.validForMs() <= 0 ? "expired" : "server-lost");
    else if (this.session.runtime.monotonicMs() < untilMs) this.#scheduleCheck(hold, checks.everyMs, checks, untilMs);
  }
}

const OPTIONS: Readonly<Record<keyof TimestampOptions, true>> = {
  leaseMs: true,
  maxClockSkewMs: true,
  takeoverMarginMs: true,
  attempts: true,
  retryDelayMs: true,
  retryJitterMs: true,
  wake: true,
  overwritten: true,
};

/**
 * Returns a lock that is shared with clients of a timestamp protocol. Sends nothing and needs no cleanup.
 *
 * @param holdfast  the result of `createHoldfast`, on one server or a cluster
 * @param name      the part of the key between the prefix and the suffix of the dialect; the key is 1 to 512 bytes
 * @param dialect   the format of the other clients: `phpSetGet`, `phpLua`, `javaGetSet`, `cppGetSet`, `javaUuid`, or a
 *                  custom object of the same type
 * @param options   see `TimestampOptions`
 * @throws TypeError, RangeError  invalid name, dialect or option; the message states the range and the value
 * @throws UnsupportedError       the Holdfast uses several independent servers
 */
export function timestampLock(
  holdfast: Holdfast,
  name: string,
  dialect: TimestampDialect,
  options: TimestampOptions = {},
): TimestampLock {
  const checked = checkDialect(dialect);
  const key = keyOf(checked, name);
  const resolved = resolveOptions(options, checked);
  const { session, defaults, prefix } = internalsOf(holdfast, name);
  const channel = resolved.wake ? `${prefix}:timestamp:${key}` : "";
  const clearsOverwritten = resolved.overwritten === "delete";
  const wire = wireOf(checked, resolved);
  const protocol = new TimestampProtocol({ session, name, dialect: checked, wire, key, channel, clearsOverwritten });
  const losersWrite = checked.unit !== "none" && checked.losersWrite;
  const checks = losersWrite
    ? { everyMs: Math.min(resolved.leaseMs, checked.leaseMs) / 3, forMs: wire.latestMs }
    : undefined;
  const own = { ...defaults, leaseMs: resolved.leaseMs };
  return new TimestampLock({ session, protocol, defaults: own, options: resolved, channel, checks });
}

const DAY_MS = 86_400_000;

function resolveOptions(options: TimestampOptions, dialect: TimestampDialect): Filled<TimestampOptions> {
  if (options === null || typeof options !== "object")
    throw new TypeError(`options must be an object; got ${show(options)}`);
  for (const option of Object.keys(options)) {
    if (Object.hasOwn(OPTIONS, option)) continue;
    throw unknownOption(option, Object.keys(OPTIONS));
  }
  const { leaseMs = dialect.leaseMs, maxClockSkewMs = 1_000, takeoverMarginMs = 0, attempts = Infinity } = options;
  const { retryDelayMs = 200, wake = true, overwritten = "leave" } = options;
  checkLeaseMs(leaseMs);
  checkWhole("maxClockSkewMs", maxClockSkewMs, dialect.unit === "s" ? 1_000 : 0, DAY_MS);
  checkWhole("takeoverMarginMs", takeoverMarginMs, 0, DAY_MS);
  if (attempts !== Infinity) checkWhole("attempts", attempts, 1, 1_000_000_000, " or Infinity");
  checkWhole("retryDelayMs", retryDelayMs, 10, 60_000);
  const { retryJitterMs = Math.floor((retryDelayMs * 3) / 4) } = options;
  checkWhole("retryJitterMs", retryJitterMs, 0, retryDelayMs);
  if (typeof wake !== "boolean") throw new TypeError(`wake must be true or false; got ${show(wake)}`);
  if (overwritten !== "leave" && overwritten !== "delete") {
    throw new TypeError(`overwritten must be "leave" or "delete"; got ${show(overwritten)}`);
  }
  return { leaseMs, maxClockSkewMs, takeoverMarginMs, attempts, retryDelayMs, retryJitterMs, wake, overwritten };
}

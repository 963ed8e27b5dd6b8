import type { Holdfast } from "../../index.js";
import type { Filled } from "../../internal.js";
import {
  checkLeaseMs,
  checkWhole,
  type Hold,
  internalsOf,
  Lease,
  type ResolvedOptions,
  type Session,
  show,
  unknownOption,
} from "../../internal.js";
import { ForeignLock } from "../foreign-lock.js";
import { checkDialect, keyOf, type TimestampDialect } from "./dialect.js";
import { TimestampProtocol } from "./protocol.js";
import { wireOf } from "./wire.js";

/** How a lock is shared. All clients of Holdfast that share it say the same. */
export interface TimestampOptions {
  /**
   * Lease of every acquire that does not say another: how long a holder may rely on it between two renewals. Longer rides out
   * longer pauses; shorter frees the lock sooner after a crash. Whole milliseconds, 100 to a year.
   * @default the dialect's
   */
  readonly leaseMs?: number | undefined;

  /**
   * How far the clocks of the other clients may be from the server's. The value ends that much later than the holder relies on
   * it. Larger is safer, and holds others up for longer after a crash; a clock that is further ahead takes live locks away.
   * Whole milliseconds: 1000 or more where values count seconds, since they are rounded; of no account where they are no time.
   * @default 1_000
   */
  readonly maxClockSkewMs?: number | undefined;

  /**
   * How long after the end of a value it is taken over: larger leaves more time to holders of the other system whose clock
   * is behind, or who overrun; 0 is their own rule. Whole milliseconds up to a day.
   * @default 0
   */
  readonly takeoverMarginMs?: number | undefined;

  /**
   * How often one acquire asks at most, the first time included; `waitMs` ends it as well. A whole number from 1, or Infinity.
   * @default Infinity
   */
  readonly attempts?: number | undefined;

  /**
   * Longest pause between two attempts, since clients of the other system tell nobody that they release. Longer asks less
   * often; shorter notices sooner. Whole milliseconds, 10 to 60,000.
   * @default 200
   */
  readonly retryDelayMs?: number | undefined;

  /**
   * What is taken off each pause at random, at most: larger keeps those who wait from coming at the same moment. Whole
   * milliseconds, 0 to `retryDelayMs`.
   * @default three quarters of `retryDelayMs`
   */
  readonly retryJitterMs?: number | undefined;

  /**
   * Whether clients of Holdfast tell each other of releases, on a channel of their own: `<prefix>:timestamp:<key>`. Otherwise
   * they find out in the pauses as well.
   * @default true
   */
  readonly wake?: boolean | undefined;

  /**
   * What a release does with the value of a client of the other system that came too late and has overwritten ours: `"leave"`
   * costs up to the lease of that client; `"delete"` frees the lock at once, and is safe only as long as no client of
   * the other system overruns its own lease.
   * @default "leave"
   */
  readonly overwritten?: "leave" | "delete" | undefined;
}

/** When a grant is first looked after: by then most who came too late have written. */
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 100;

/** How a grant is looked after, where clients that came too late may overwrite it: what they write is over before our lease. */
interface Looks {
  readonly everyMs: number;
  readonly forMs: number;
}

/**
 * A lock that services in other languages share, by SETNX and the time at which it ends in the value.
 *
 * Among clients of Holdfast it is a mutex as others are: one live lease, renewed, told of its loss, with tokens that rise. With
 * the others it is as safe as their protocol. Not safe, whatever we do: a client of theirs that overruns deletes the lock of
 * the next holder when it releases (`lease.signal` aborts at the next renewal); one whose clock is ahead by more than the lease
 * takes live locks away; locks that they leave behind are waited for. What of this is seen is told on the channel
 * `holdfast:peer`. The token orders holders of Holdfast alone: against the others guard the resource by a version of its own.
 *
 * `forceRelease` is for holders of either side; `inspect` names one of the other system by the value of the key. Where it shows
 * one of ours and such a value, nobody can tell which of the two has the lock: name that value first, and then ours.
 *
 * Not reentrant. No order among processes. Its leases cannot be exported.
 *
 * Algorithm: SETNX with a deadline in the value, as several articles have it; each step one script with the server's clock,
 * and an owner beside the value (docs/interop.md).
 */
export class TimestampLock extends ForeignLock {
  /** The key on the server, to compare with what the other clients use. */
  readonly key: string;
  readonly #protocol: TimestampProtocol;
  readonly #looks: Looks | undefined;

  /** @internal */
  constructor(parts: {
    readonly session: Session;
    readonly protocol: TimestampProtocol;
    readonly defaults: ResolvedOptions;
    readonly options: Filled<TimestampOptions>;
    readonly channel: string;
    readonly looks: Looks | undefined;
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
    this.#looks = parts.looks;
  }

  /** @internal */
  protected override begun(hold: Hold): void {
    if (this.#looks === undefined) return;
    const { runtime } = this.session;
    const inMs = FIRST_LOOK_MS + runtime.random() * (LAST_LOOK_MS - FIRST_LOOK_MS);
    this.#lookIn(hold, inMs, this.#looks, runtime.monotonicMs() + this.#looks.forMs);
  }

  #lookIn(hold: Hold, inMs: number, looks: Looks, untilMs: number): void {
    this.session.runtime.startTimer(() => void this.#lookAfter(hold, looks, untilMs), inMs, false);
  }

  /** Puts the value right, or finds that it was lost, without making the lease any longer. */
  async #lookAfter(hold: Hold, looks: Looks, untilMs: number): Promise<void> {
    if (hold.validForMs() <= 0) return;
    // An answer that is lost is no loss: the next look, or renewal, tells.
    const outcome = await this.#protocol.extend(hold.grant, 1, this.session.commandTimeoutMs).catch(() => "extended");
    if (outcome !== "extended") hold.lose(hold.validForMs() <= 0 ? "expired" : "server-lost");
    else if (this.session.runtime.monotonicMs() < untilMs) this.#lookIn(hold, looks.everyMs, looks, untilMs);
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
 * The lock of that name, shared with clients of a timestamp protocol. Costs nothing and needs no clean-up.
 *
 * @param holdfast  what `createHoldfast` returned, on one server or a cluster
 * @param name      what stands between the prefix and the suffix of the dialect; the key is 1 to 512 bytes
 * @param dialect   how the others write it: one of `phpSetGet`, `phpLua`, `javaGetSet`, `cppGetSet`, `javaUuid`, or an object
 *                  like them
 * @throws TypeError, RangeError  a wrong name, dialect or option; the message names it, its range and what came
 * @throws UnsupportedError       the Holdfast is on several independent servers
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
  const looks = losersWrite
    ? { everyMs: Math.min(resolved.leaseMs, checked.leaseMs) / 3, forMs: wire.latestMs }
    : undefined;
  const own = { ...defaults, leaseMs: resolved.leaseMs };
  return new TimestampLock({ session, protocol, defaults: own, options: resolved, channel, looks });
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

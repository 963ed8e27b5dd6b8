/**
 * Idempotent execution: among calls with the same key, only one runs, and all of them get its result.
 *
 * A running call holds an ordinary lease. Holdfast renews the lease and notifies the holder if it is lost. After a
 * crash, the lease expires. When the work ends, one script checks that the call still belongs to this attempt and
 * records the outcome. So if a late attempt overlaps with its successor, only one of them is recorded. Other callers
 * wait for the message that this script publishes, then query the record again.
 */

import { AcquireTimeoutError, type Holdfast, LeaseLostError, type Store, StoreError } from "holdfast";
import { ForeignLock, type Hold, internalsOf, Lease, serverOf } from "holdfast/internal";
import { decodeFailure } from "../failure.js";
import { checkBytes, nameOf } from "../names.js";
import { type OnceTrace, onceTracing, traced } from "../tracing.js";
import { endingOf, policyOf } from "./endings.js";
import {
  OnceFailedError,
  OnceLostError,
  OnceRunningError,
  OnceUnavailableError,
  OnceUnrecordedError,
} from "./errors.js";
import { fingerprintOf } from "./fingerprint.js";
import { OnceLease } from "./lease.js";
import { type OnceOptions, type OnceOutcome, type ResolvedOnce, resolveOnce as resolveOptions } from "./options.js";
import { OnceProtocol, Over } from "./protocol.js";

/** The result of `once`. */
export interface OnceResult<Value> {
  /** The value that `work` returned. */
  readonly value: Value;
  /** False if this call ran the work; true if it got the recorded result of another call. */
  readonly replayed: boolean;
  /** Number of the attempt that ended the call. 1 unless earlier attempts crashed or released the call. */
  readonly attempt: number;
  /** Fencing token of that attempt. */
  readonly token: number;
  /** Server time at which the first attempt began, in milliseconds since 1970. */
  readonly firstAtMs: number;
}

/** Trace fields of a call whose arguments have not been validated yet. */
const NOTHING_KNOWN = { lockName: undefined, token: undefined, attempt: undefined, server: undefined };

/** Longest time between two queries by a waiter. It queries even without a message, because a message can be lost. */
const RECHECK_MS = 2_000;

/**
 * Runs `work` if no call with this key has ended yet, and returns the result of the call that ran.
 *
 * Guarantees, for `keepMs` and as long as the server loses no data: a key has at most one recorded outcome, and the
 * leases of two attempts are never valid at the same time. **The effect of `work` may still happen more than once**: a
 * process may crash between the effect and the record, or continue after its `signal` aborts. To protect the effect,
 * pass `lease.token` with each write, or pass the key to the service you call.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param key       identifies the call, 1 to 255 bytes
 * @param work      gets the lease of its attempt; its errors are passed on unchanged
 * @returns the value that `work` returned, here or in the call that ran it; each other caller gets its own decoded copy
 * @throws the error that `work` threw, if it ran here; otherwise one of the following
 * @throws OnceRunningError      another caller still runs the work after `waitMs`, or `whenRunning` is `"reject"`
 * @throws OnceMismatchError     the key belongs to a call with a different fingerprint
 * @throws OnceBlockedError      the outcome of an earlier attempt is unknown; see `resolveOnce`
 * @throws OnceFailedError       the call failed before, and `after` returned `"keep"`
 * @throws OnceUnavailableError  the call is done, but its value was not kept
 * @throws OnceLostError         `work` ended here after the call was taken over; its value, in `error.value`, is not
 *                               recorded
 * @throws OnceUnrecordedError   `work` ended here, and it is unknown whether that was recorded; its value is in
 *                               `error.value`
 * @throws StoreError, EvictionError, ClosedError  `work` was not called
 * @throws TypeError, RangeError  an invalid argument; nothing was sent
 * @throws UnsupportedError       this Holdfast uses several independent servers
 * @throws the reason of `signal`, if it aborts the wait
 *
 * @example
 * const { value, replayed } = await once(
 *   holdfast,
 *   `charge:${order.id}`,
 *   (lease) => charge(order, { signal: lease.signal }),
 *   { fingerprint: order },
 * );
 */
export function once<Value>(
  holdfast: Holdfast,
  key: string,
  work: (lease: OnceLease) => Value | Promise<Value>,
  options: OnceOptions<Value> = {},
): Promise<OnceResult<Value>> {
  const begin = (): OnceTrace => ({ kind: "once", ...NOTHING_KNOWN });
  return traced(onceTracing, begin, (trace) => callOnce(holdfast, key, work, options, trace));
}

async function callOnce<Value>(
  holdfast: Holdfast,
  key: string,
  work: (lease: OnceLease) => Value | Promise<Value>,
  options: OnceOptions<Value>,
  trace: OnceTrace | undefined,
): Promise<OnceResult<Value>> {
  const resolved = resolveOptions(options);
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${typeof work}`);
  const { lock, protocol, store } = made(holdfast, key, resolved);
  if (trace !== undefined) Object.assign(trace, { lockName: protocol.name, server: serverOf(store) });
  const { leaseMs, maxHoldMs, label, signal } = resolved;
  const waitMs = resolved.whenRunning === "reject" ? 0 : resolved.waitMs;
  let lease: OnceLease;
  try {
    const wait = signal === undefined ? { waitMs } : { waitMs, signal };
    // Overrides the default of the Holdfast: without renewal, a long run would be started a second time.
    lease = await lock.acquire({ leaseMs, renew: true, maxHoldMs, label, ...wait });
  } catch (error) {
    if (error instanceof Over) return replayed<Value>(protocol.name, error, resolved);
    if (error instanceof AcquireTimeoutError) {
      throw new OnceRunningError(protocol.name, { waitMs, holder: error.holder, cause: error });
    }
    throw error;
  }
  if (trace !== undefined) Object.assign(trace, { token: lease.token, attempt: lease.attempt });
  return perform(lease, protocol, work, resolved, options.after);
}

function made(
  holdfast: Holdfast,
  key: string,
  { scope, fingerprint, strictFingerprint, keepMs, savedCodec }: ResolvedOnce,
): { lock: ForeignLock<OnceLease>; protocol: OnceProtocol; store: Store } {
  const name = nameOf(scope, checkBytes("key", key));
  const { session, defaults, prefix } = internalsOf(holdfast, name);
  const print = fingerprintOf(fingerprint);
  const protocol = new OnceProtocol({ session, prefix, name, keepMs, fingerprint: print, strictFingerprint });
  const lock = new ForeignLock<OnceLease>({
    session,
    protocol,
    defaults,
    make: (held) => new OnceLease(held, protocol, protocol.begins(held.owner), savedCodec),
    pauses: { delayMs: RECHECK_MS, jitterMs: RECHECK_MS / 4 },
    // A different fingerprint gets its own local queue, so that a mismatch is refused without waiting its turn.
    line: `once ${protocol.key} ${print} ${strictFingerprint}`,
    listen: (_claim, onNews) => session.store.inbox(protocol.channel, onNews, session.commandTimeoutMs),
  });
  return { lock, protocol, store: session.store };
}

function replayed<Value>(
  name: string,
  { state, text, token, attempt, firstMs }: Over,
  { codec }: ResolvedOnce,
): OnceResult<Value> {
  if (state === "bare") throw new OnceUnavailableError(name, { firstMs });
  if (state === "failed") throw new OnceFailedError(name, decodeFailure(text));
  return { value: codec.decode(text) as Value, replayed: true, attempt, token, firstAtMs: firstMs };
}

async function perform<Value>(
  lease: OnceLease,
  protocol: OnceProtocol,
  work: (lease: OnceLease) => Value | Promise<Value>,
  resolved: ResolvedOnce,
  after: OnceOptions<Value>["after"],
): Promise<OnceResult<Value>> {
  let outcome: OnceOutcome<Value>;
  try {
    outcome = { ok: true, value: await work(lease) };
  } catch (error) {
    outcome = { ok: false, error };
  }
  const { policy, refusal } = policyOf(outcome, after);
  const ending = endingOf(outcome, policy, resolved);
  const hold = Lease.holdingOf(lease) as Hold;
  const { token, owner, attempt } = lease;
  const wasValid = lease.validForMs() > 0;
  hold.rest();
  let state: string | undefined;
  try {
    state = await protocol.settle(lease, ending).catch((error: unknown) => {
      if (error instanceof LeaseLostError) return "";
      throw error;
    });
  } catch (error) {
    lease.end("released", "unknown");
    hold.end("unknown");
    if (!outcome.ok) throw outcome.error;
    if (!(error instanceof StoreError)) throw error;
    const { mayHaveRun, transient, cause } = error;
    throw new OnceUnrecordedError(protocol.name, { mayHaveRun, transient, cause }, outcome.value);
  }
  if (state === undefined) {
    lease.end("released");
    hold.end("released");
    if (ending.state === "released") {
      protocol.ends(owner);
      hold.undoLateRequests();
    }
  } else {
    hold.lose(wasValid ? "server-lost" : "expired");
  }
  if (!outcome.ok) throw outcome.error;
  if (refusal !== undefined) throw refusal.error;
  if (state !== undefined) {
    const { reason } = lossOf(lease);
    throw new OnceLostError(protocol.name, { reason, token, owner, value: outcome.value });
  }
  return { value: outcome.value, replayed: false, attempt, token, firstAtMs: lease.firstAt.getTime() };
}

/** Returns the error that says why a lease was lost. The lease must be over. */
function lossOf(lease: OnceLease): LeaseLostError {
  try {
    lease.assertHeld();
  } catch (error) {
    if (error instanceof LeaseLostError) return error;
    throw error;
  }
  throw new Error(`the lease on ${lease.name} is not over`);
}

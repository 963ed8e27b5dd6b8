/**
 * Idempotent execution: of all calls with one key, one runs, and all get its result.
 *
 * While it runs, the call is a lease as any other: renewed, told of its loss, and free again soon after its process died. When
 * it ends, one script compares that it is still this attempt's and stores what became of it; so of two attempts, one of
 * which was late, one is recorded. Others wait for the message of that script, then ask again.
 */
import { AcquireTimeoutError, type Holdfast, LeaseLostError, type Store, StoreError } from "../../index.js";
import { type Hold, internalsOf, Lease, serverOf } from "../../internal.js";
import { ForeignLock } from "../../interop/foreign-lock.js";
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

/** What `once` found. */
export interface OnceResult<Value> {
  readonly value: Value;
  /** False if this very call ran the work; true if it got what an earlier one had recorded. */
  readonly replayed: boolean;
  /** Which attempt has ended the call: 1 unless others died or gave back before it. */
  readonly attempt: number;
  /** Fencing token of that attempt. */
  readonly token: number;
  /** When the first attempt began, in ms since 1970 by the server's clock. */
  readonly firstAtMs: number;
}

/** Of a call whose arguments were not checked yet. */
const NOTHING_KNOWN = { lockName: undefined, token: undefined, attempt: undefined, server: undefined };

/** How long a waiter that is not told anything sleeps at most: a message can be lost with its connection. */
const RECHECK_MS = 2_000;

/**
 * Runs `work` if no call with this key has ended yet, and gives what the one that ran has returned.
 *
 * Promised, for `keepMs`, while the server forgets nothing: at most one recorded outcome for a key, and two attempts never both
 * inside their validity. **Not promised is that the effect of `work` happens once**: a process may die between the effect and
 * the record, or go on past its `signal`. Give `lease.token` to what is written, or the key to whatever is called.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param key       what is to be done once, 1 to 255 bytes
 * @param work      gets the lease of its attempt; what it throws is passed on untouched
 * @returns what `work` returned, here or in the call that ran it; decoded anew for each caller
 * @throws what `work` threw, if it ran here; otherwise
 * @throws OnceRunningError      another caller runs it, and `waitMs` is over; or it was not to be waited for
 * @throws OnceMismatchError     the key belongs to a call with another fingerprint
 * @throws OnceBlockedError      nobody knows how it ended; see `resolveOnce`
 * @throws OnceFailedError       it failed before, and `after` said to keep that
 * @throws OnceUnavailableError  it is done, but its value was not kept
 * @throws OnceLostError         `work` ended here after the call was taken over; its value is in `error.value`, and is not recorded
 * @throws OnceUnrecordedError   `work` ended here, and whether that was recorded is unknown; its value is in `error.value`
 * @throws StoreError, EvictionError, ClosedError  `work` was not called
 * @throws TypeError, RangeError  a wrong argument; nothing was sent
 * @throws UnsupportedError       this Holdfast is on several independent servers
 * @throws the reason of `signal`, if it ends the wait
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
    // Whatever the Holdfast's default: a long run that is not renewed would be doubled.
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
    // Of another content it is another call: it is refused, and does not wait for its turn to hear that.
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

/** Why a lease that is over was lost, in the words of its signal. */
function lossOf(lease: OnceLease): LeaseLostError {
  try {
    lease.assertHeld();
  } catch (error) {
    if (error instanceof LeaseLostError) return error;
    throw error;
  }
  throw new Error(`the lease on ${lease.name} is not over`);
}

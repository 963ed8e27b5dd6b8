/**
 * Many calls, few runs: one runs, one waits, and whatever comes meanwhile is taken care of by the one that waits.
 *
 * The order of calls is that of arrival at the server. Who runs next is decided when the last one has ended, not when a call
 * arrives: it is the newest of those who are there then, and only when it begins are the older ones told. So an update is lost
 * only with all processes that knew of it.
 */
import { type AcquireOptions, type Holdfast, LeaseLostError, type WaitingClaim } from "../../index.js";
import { checkName, describeClaim, internalsOf, Lock, type Runtime } from "../../internal.js";
import { decodeFailure, encodeFailure } from "../failure.js";
import { type Refusal, refusalOf } from "../refusal.js";
import { WorkLostError } from "../under-lock.js";
import { CoalesceJoinError } from "./errors.js";
import type { CoalesceLease } from "./lease.js";
import { type CoalesceOptions, type ResolvedCoalesce, resolveCoalesce } from "./options.js";
import { CoalesceProtocol, Joined, type RunEnd, Superseded } from "./protocol.js";

/** What has become of a call: it ran, a later one did, it got what another has found, or it gave up. */
export type CoalesceResult<Value> =
  | { readonly outcome: "ran"; readonly value: Value }
  | { readonly outcome: "superseded"; readonly by: WaitingClaim }
  | { readonly outcome: "joined"; readonly value: Value }
  | Refusal;

/** How the work of this very call ended. */
type Outcome<Value> = { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly error: unknown };

/**
 * Runs `work` after whoever runs now has ended, unless a later call takes its place.
 *
 * Promised, while the server forgets nothing: **after the last call at least one run begins later than it**, unless that call gives
 * up, and runs never overlap inside their validity. A run that fails, or dies, has begun all the same, and is not repeated.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param name      what is to be done, 1 to 512 bytes
 * @param work      what it throws is passed on untouched; its lease's signal may abort with the reason `superseded`
 * @returns `ran` with what `work` returned; `superseded`, and by whose claim: `work` was not called, or it was asked to end and
 *          threw the reason of its signal, or an error with that as its cause; `joined` with what the run has returned in which this
 *          call shared, decoded anew; or why it was refused: `held` when `waitMs` is over, `grace` or `unavailable`
 * @throws what `work` threw; otherwise
 * @throws WorkLostError      `work` ended after its lease; its value is in `error.value`, and it may have overlapped with the next run
 * @throws CoalesceJoinError  the run in which this call shared has failed, or its value cannot be handed on
 * @throws ClosedError        this Holdfast was closed; `work` was not called
 * @throws TypeError, RangeError  a wrong argument; nothing was sent
 * @throws the reason of `signal`, if it ends the wait
 */
export async function coalesce<Value>(
  holdfast: Holdfast,
  name: string,
  work: (lease: CoalesceLease) => Value | Promise<Value>,
  options: CoalesceOptions = {},
): Promise<CoalesceResult<Value>> {
  checkName(name);
  const resolved = resolveCoalesce(options);
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${typeof work}`);
  const { session, defaults, prefix } = internalsOf(holdfast, name);
  const { mode, cancelRunning, waitMs, leaseMs, maxHoldMs, label, signal } = resolved;
  let outcome: Outcome<Value> | undefined;
  const ended = (): RunEnd => endOf(outcome, resolved);
  let lease: CoalesceLease | undefined;
  const foundNothing = (): "superseded" | "unbegun" | undefined => {
    if (lease === undefined) return "unbegun";
    return outcome?.ok === false && lease.isSupersededFor(outcome.error) ? "superseded" : undefined;
  };
  // Who does not wait has nothing for which the other should end.
  const cancels = cancelRunning && waitMs > 0;
  const protocol = new CoalesceProtocol({ session, prefix, name, mode, cancelRunning: cancels, ended, foundNothing });
  const lock = new Lock<CoalesceLease>(session, protocol, defaults, (hold) => protocol.leaseOn(hold));
  const superseded = async (by: string): Promise<CoalesceResult<Value>> => ({
    outcome: "superseded",
    by: await describeClaim(session, by),
  });

  try {
    const waiting = { renew: true, waitMs, leaseMs, maxHoldMs, label, ...(signal === undefined ? {} : { signal }) };
    lease = await begun(lock, protocol, waiting, session.runtime);
  } catch (error) {
    if (error instanceof Superseded) return superseded(error.by);
    if (error instanceof Joined) return joined<Value>(name, error.end, resolved);
    const refusal = refusalOf(error);
    if (refusal === undefined) throw error;
    return refusal;
  }
  try {
    outcome = { ok: true, value: await work(lease) };
  } catch (error) {
    outcome = { ok: false, error };
  }
  const lost = await givenBack(lease);
  if (!outcome.ok) {
    if (lease.isSupersededFor(outcome.error)) return superseded(protocol.supersededBy ?? "");
    throw outcome.error;
  }
  if (lost !== undefined) {
    const { token, owner } = lease;
    throw new WorkLostError(name, { reason: lost, token, owner, value: outcome.value });
  }
  return { outcome: "ran", value: outcome.value };
}

/** A lease that was lost before the call began was of no use to anybody: it waits again, in its place. */
async function begun(
  lock: Lock<CoalesceLease>,
  protocol: CoalesceProtocol,
  options: AcquireOptions & { readonly waitMs: number },
  runtime: Runtime,
): Promise<CoalesceLease> {
  const { waitMs, signal } = options;
  const endsAtMs = runtime.monotonicMs() + waitMs;
  const leftMs = (): number => Math.max(0, endsAtMs - runtime.monotonicMs());
  const stays = (): boolean => leftMs() > 0 && signal?.aborted !== true;
  for (let isFirst = true; ; isFirst = false) {
    const lease = await lock.acquire(isFirst ? options : { ...options, waitMs: leftMs() });
    let hasBegun = false;
    try {
      // The answer may have taken longer than the lease.
      hasBegun = (await protocol.begin(lease, stays)) && lease.validForMs() > 0;
      if (hasBegun) return lease;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      if (!hasBegun) await lease.release().catch(() => {});
    }
  }
}

/** @returns why the lease was lost before the work ended; undefined if it was not */
async function givenBack(lease: CoalesceLease): Promise<LeaseLostError["reason"] | undefined> {
  const wasHeld = lease.validForMs() > 0;
  try {
    await lease.release();
    return undefined;
  } catch (error) {
    if (error instanceof LeaseLostError) return error.reason;
    // Nobody else held it while the work ran, and it ends by itself.
    return wasHeld ? undefined : "expired";
  }
}

function endOf(outcome: Outcome<unknown> | undefined, { codec, valueBytesMax }: ResolvedCoalesce): RunEnd {
  if (outcome === undefined) return { state: "bare", text: "" };
  if (!outcome.ok) return { state: "failed", text: encodeFailure(outcome.error, valueBytesMax) };
  try {
    const text = codec.encode(outcome.value);
    if (Buffer.byteLength(text) <= valueBytesMax) return { state: "done", text };
  } catch {
    // What cannot be text is as what is too large.
  }
  return { state: "bare", text: "" };
}

function joined<Value>(name: string, { state, text }: RunEnd, { codec }: ResolvedCoalesce): CoalesceResult<Value> {
  if (state === "done") return { outcome: "joined", value: codec.decode(text) as Value };
  throw new CoalesceJoinError(name, state === "failed" ? decodeFailure(text) : undefined);
}

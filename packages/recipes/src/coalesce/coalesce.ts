/**
 * Coalesces calls: while one call runs, later calls wait, and then a single run of one of them serves them all.
 *
 * Calls are ordered by their arrival at the server. The next call to run is chosen when the last run ends, not when a
 * call arrives: it is the newest call that is waiting at that moment. Older calls are superseded only when that call
 * begins to run. So an update is lost only if all processes that know of it crash.
 */
import { type AcquireOptions, type Holdfast, LeaseLostError, type WaitingClaim } from "holdfast";
import { checkName, describeClaim, internalsOf, Lock, type Runtime } from "holdfast/internal";
import { decodeFailure, encodeFailure } from "../failure.js";
import { type Refusal, refusalOf } from "../refusal.js";
import { WorkLostError } from "../under-lock.js";
import { CoalesceJoinError } from "./errors.js";
import type { CoalesceLease } from "./lease.js";
import { type CoalesceOptions, type ResolvedCoalesce, resolveCoalesce } from "./options.js";
import { CoalesceProtocol, Joined, type RunEnd, Superseded } from "./protocol.js";

/** The result of a call: it ran, a later call superseded it, it got the value of another run, or it was refused. */
export type CoalesceResult<Value> =
  | { readonly outcome: "ran"; readonly value: Value }
  | { readonly outcome: "superseded"; readonly by: WaitingClaim }
  | { readonly outcome: "joined"; readonly value: Value }
  | Refusal;

/** How the work of this call ended. */
type Outcome<Value> = { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly error: unknown };

/**
 * Runs `work` after the current run has ended, unless a later call takes its place.
 *
 * Guarantees, as long as the server loses no data: **a run begins after the last call**, unless that call gives up, and
 * the leases of two runs are never valid at the same time. A run that fails or crashes counts as begun and is not
 * repeated.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param name      identifies the work, 1 to 512 bytes
 * @param work      its errors are passed on unchanged; the signal of its lease may abort with a LeaseLostError whose
 *                  reason is `superseded`
 * @returns one of these results:
 *          - `ran` with the value that `work` returned
 *          - `superseded` with the claim of the later call: `work` was not called, or it was asked to end and threw the
 *            reason of its signal, or an error with that reason as its cause
 *          - `joined` with a decoded copy of the value of the run that this call joined
 *          - a refusal: `held` after `waitMs`, `grace` or `unavailable`
 * @throws the error that `work` threw; otherwise one of the following
 * @throws WorkLostError      `work` ended after its lease and may have overlapped with the next run; its value is in
 *                            `error.value`
 * @throws CoalesceJoinError  the run that this call joined failed, or its value could not be shared
 * @throws ClosedError        this Holdfast was closed; `work` was not called
 * @throws TypeError, RangeError  an invalid argument; nothing was sent
 * @throws the reason of `signal`, if it aborts the wait
 *
 * @example
 * const result = await coalesce(holdfast, "search-index", async (lease) => {
 *   await rebuildIndex({ signal: lease.signal });
 * });
 * if (result.outcome === "superseded") return; // a later call rebuilds the index
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
  // A call that does not wait gains nothing from the end of the current run.
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

/**
 * Acquires the lease and begins the call. If the lease is lost before the call begins, waits again in the same place in
 * the order of arrival.
 */
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
      // The reply may have taken longer than the lease.
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
    // If the lease was held to the end of the work, no other run overlapped with it. The lease expires on its own.
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
    // A value that cannot be encoded is treated like one that is too large.
  }
  return { state: "bare", text: "" };
}

function joined<Value>(name: string, { state, text }: RunEnd, { codec }: ResolvedCoalesce): CoalesceResult<Value> {
  if (state === "done") return { outcome: "joined", value: codec.decode(text) as Value };
  throw new CoalesceJoinError(name, state === "failed" ? decodeFailure(text) : undefined);
}

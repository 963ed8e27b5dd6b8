/**
 * Applies events in order: one at a time for each object, and each event once.
 *
 * The order is that of a strict mutex: the order of arrival at the server, across all processes. The record of applied
 * events is read after the grant and not on arrival, because callers ahead in the queue may be applying the same event.
 * When the work has succeeded, one script checks that the object still belongs to this caller and records the event.
 */
import { type Holdfast, type Lease, LeaseLostError, StoreError } from "holdfast";
import { askAsHolder, internalsOf } from "holdfast/internal";
import { checkBytes } from "../names.js";
import { type Refusal, refusalOf } from "../refusal.js";
import { WorkLostError } from "../under-lock.js";
import { UnrecordedError } from "../unrecorded.js";
import { joinCrowd } from "./crowd.js";
import { type KeyedPassed, Marks } from "./marks.js";
import { checkGroup, type KeyedOptions, resolveKeyed } from "./options.js";

/** The result of an event: `ran`, skipped as `duplicate` or `outdated`, or refused. */
export type KeyedResult<Value> = { readonly outcome: "ran"; readonly value: Value } | KeyedPassed | Refusal;

/** The objects of one group, each with its own queue. */
export interface Keyed {
  /**
   * Waits for the object, then runs `work` to apply the event, unless it was already applied.
   *
   * Guarantees, as long as the server loses no data: events of one object are applied one at a time, in order of
   * arrival at the server. An event is not applied if one with the same id was recorded less than `keepMs` ago. **The
   * effect of `work` may still happen more than once**: a process may crash between the effect and the record. To
   * protect the effect, pass `lease.token` with each write.
   *
   * @param object  the object that the event is about, 1 to 255 bytes
   * @param work    applies the event; its errors are passed on unchanged. If it throws, nothing is recorded, and the
   *                event may be delivered again
   * @returns `ran` with the value that `work` returned; `duplicate` or `outdated` if `work` was not called; or a
   *          refusal: `full`, `held` after `waitMs`, `paused`, `grace` or `unavailable`. After a refusal, the sender
   *          should retry later
   * @throws the error that `work` threw; otherwise one of the following
   * @throws WorkLostError    `work` ended after its lease; its value is in `error.value`, and nothing is recorded
   * @throws UnrecordedError  `work` ended, and it is unknown whether that was recorded; its value is in `error.value`
   * @throws ClosedError      this Holdfast was closed; `work` was not called
   * @throws TypeError, RangeError  an invalid argument; nothing was sent
   * @throws the reason of `signal`, if it aborts the wait
   */
  run<Value>(
    object: string,
    work: (lease: Lease) => Value | Promise<Value>,
    options?: KeyedOptions,
  ): Promise<KeyedResult<Value>>;
}

/**
 * Returns the objects of a group, such as one sender of webhooks. Sends nothing and needs no cleanup.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param group     name of the group, 1 to 64 bytes. Include the tenant if there are several
 * @throws TypeError, RangeError  an invalid argument
 * @throws UnsupportedError       this Holdfast uses several independent servers
 *
 * @example
 * const webhooks = keyed(holdfast, "shop");
 * const result = await webhooks.run(event.orderId, (lease) => applyEvent(event, lease.token), { eventId: event.id });
 * if (result.outcome === "refused") retryLater();
 */
export function keyed(holdfast: Holdfast, group: string): Keyed {
  // An encoded group contains no slash, so different pairs of group and object have different names.
  const prefix = `keyed/${encodeURIComponent(checkGroup(group))}/`;
  internalsOf(holdfast, prefix);
  return {
    run: (object, work, options = {}) => apply(holdfast, prefix, { object, work, options }),
  };
}

async function apply<Value>(
  holdfast: Holdfast,
  namePrefix: string,
  { object, work, options }: { object: string; work: (lease: Lease) => Value | Promise<Value>; options: KeyedOptions },
): Promise<KeyedResult<Value>> {
  const name = namePrefix + checkBytes("object", object);
  const event = resolveKeyed(options);
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${typeof work}`);
  const { session, prefix } = internalsOf(holdfast, name);
  const { waitersMax, waitMs, leaseMs, maxHoldMs, label, signal } = event;
  const waiting = { renew: true, waitMs, leaseMs, maxHoldMs, label, ...(signal === undefined ? {} : { signal }) };
  const leave = joinCrowd(session, name, waitersMax);
  if (leave === undefined) return { outcome: "refused", reason: "full" };

  let lease: Lease;
  try {
    lease = await holdfast.mutex(name).acquire({ ...waiting, fairness: "strict" });
  } catch (error) {
    return refusedBy(error);
  } finally {
    leave();
  }
  try {
    const marks = new Marks({ session, prefix, name, event });
    const passed = await marks.check().catch(refusedBy);
    if (passed !== undefined) return passed;
    // The reply may have taken longer than the lease. Another holder may then already be working.
    const loss = lossOf(lease);
    if (loss !== undefined) return { outcome: "refused", reason: "unavailable", error: loss };
    const value = await work(lease);
    await record(marks, lease, value);
    return { outcome: "ran", value };
  } finally {
    // A failed release needs no report: a loss was already reported, and the lease expires on its own.
    await lease.release().catch(() => {});
  }
}

/** Returns the refusal that corresponds to `error`, or throws `error` if there is none. */
function refusedBy(error: unknown): Refusal {
  const refusal = refusalOf(error);
  if (refusal === undefined) throw error;
  return refusal;
}

async function record(marks: Marks, lease: Lease, value: unknown): Promise<void> {
  const { name, token, owner } = lease;
  let isRecorded: boolean;
  try {
    isRecorded = await askAsHolder(
      lease,
      () => marks.record(lease),
      (answer) => !answer,
    );
  } catch (error) {
    if (error instanceof StoreError) {
      const { mayHaveRun, transient, cause } = error;
      throw new UnrecordedError(name, { mayHaveRun, transient, cause }, value);
    }
    if (!(error instanceof LeaseLostError)) throw error;
    isRecorded = false;
  }
  if (isRecorded) return;
  const { reason, forced } = lossOf(lease) ?? { reason: "server-lost" as const, forced: undefined };
  throw new WorkLostError(name, { reason, token, owner, forced, value });
}

/** Returns why the lease is over, as far as this process knows; undefined if it is still held. */
function lossOf(lease: Lease): LeaseLostError | undefined {
  try {
    lease.assertHeld();
    return undefined;
  } catch (error) {
    if (error instanceof LeaseLostError) return error;
    throw error;
  }
}

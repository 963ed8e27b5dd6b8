/**
 * Events applied in order, one at a time for each object, each once.
 *
 * The order is that of a strict mutex: of arrival at the server, over all processes. What was applied is looked up when the
 * object is granted, not on arrival, since those in front may be about to apply the same; and it is recorded when the work has
 * ended well, by one script that compares that the object is still this caller's.
 */
import { type Holdfast, type Lease, LeaseLostError, StoreError } from "../../index.js";
import { askAsHolder, internalsOf } from "../../internal.js";
import { checkBytes } from "../names.js";
import { type Refusal, refusalOf } from "../refusal.js";
import { WorkLostError } from "../under-lock.js";
import { UnrecordedError } from "../unrecorded.js";
import { joinCrowd } from "./crowd.js";
import { type KeyedPassed, Marks } from "./marks.js";
import { checkGroup, type KeyedOptions, resolveKeyed } from "./options.js";

/** What has become of an event: it was applied, it had been before, a later one had been, or it was not its turn in time. */
export type KeyedResult<Value> = { readonly outcome: "ran"; readonly value: Value } | KeyedPassed | Refusal;

/** The objects of one group, each with a queue of its own. */
export interface Keyed {
  /**
   * Waits for the turn of this event at its object, then applies it by `work`, unless it has been applied before.
   *
   * Promised, while the server forgets nothing: events of one object are applied one at a time, in the order in which they have
   * arrived at the server; and none with the id of one that was recorded less than `keepMs` ago. **Not promised is that the
   * effect of `work` happens once**: a process may die between the effect and the record. Give `lease.token` to what is written.
   *
   * @param object  what the event is about, 1 to 255 bytes
   * @param work    what it throws is passed on untouched; then nothing is recorded, and the event may be delivered again
   * @returns `ran` with what `work` returned; `duplicate` or `outdated`, and `work` was not called; or why it was refused: `full`,
   *          `held` when `waitMs` is over, `paused`, `grace` or `unavailable`, and the sender should come again
   * @throws what `work` threw; otherwise
   * @throws WorkLostError    `work` ended after its lease; its value is in `error.value`, and nothing is recorded
   * @throws UnrecordedError  `work` ended, and whether that is recorded is unknown; its value is in `error.value`
   * @throws ClosedError      this Holdfast was closed; `work` was not called
   * @throws TypeError, RangeError  a wrong argument; nothing was sent
   * @throws the reason of `signal`, if it ends the wait
   */
  run<Value>(
    object: string,
    work: (lease: Lease) => Value | Promise<Value>,
    options?: KeyedOptions,
  ): Promise<KeyedResult<Value>>;
}

/**
 * The objects of that group, such as one sender of webhooks. Costs nothing, and needs no clean-up.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param group     with the tenant in it, if there are several; 1 to 64 bytes
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       this Holdfast is on several independent servers
 */
export function keyed(holdfast: Holdfast, group: string): Keyed {
  // An encoded group has no slash, so no two pairs of group and object have the same name.
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
    // The answer may have taken longer than the lease, and then somebody else may be at work.
    const loss = lossOf(lease);
    if (loss !== undefined) return { outcome: "refused", reason: "unavailable", error: loss };
    const value = await work(lease);
    await record(marks, lease, value);
    return { outcome: "ran", value };
  } finally {
    // What there is to say of the lease has been said by then, and it ends by itself.
    await lease.release().catch(() => {});
  }
}

/** What a refusal means; anything else is thrown. */
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

/** Why it is over, as far as has been heard here; undefined if it is not. */
function lossOf(lease: Lease): LeaseLostError | undefined {
  try {
    lease.assertHeld();
    return undefined;
  } catch (error) {
    if (error instanceof LeaseLostError) return error;
    throw error;
  }
}

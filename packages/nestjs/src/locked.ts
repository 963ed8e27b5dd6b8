/** `@Locked`: a method that runs under a lock whose name can depend on its arguments. */

import type { Refusal } from "@holdfast/recipes";
import { lockNamed, type MakeLock, refusalOf, runUnder } from "@holdfast/recipes/internal";
import { type AcquireOptions, DEFAULTS } from "holdfast";
import { ACQUIRE_OPTIONS, checkKnown, resolve, show } from "holdfast/internal";
import { holdfastOf, injectInto } from "./instances.js";
import { type AnyMethod, decorated, dressAs, type LeaseParameter, markLocked, withLease } from "./marks.js";

/** Options of `@Locked`: those of `acquire` except `signal`, and the following. */
export interface LockedOptions<Args extends readonly unknown[] = readonly unknown[]>
  extends Omit<AcquireOptions, "signal">,
    LeaseParameter {
  /** The name of the lock, 1 to 512 bytes, or a function that computes it from the arguments. */
  readonly name: string | ((...args: Args) => string);

  /**
   * What happens if the lock is not acquired. `"throw"` rejects with the error of `acquire`. `"skip"` skips the method
   * and resolves to a `Refusal`, with the reason and the holder.
   * @default "throw"
   */
  readonly whenBusy?: "throw" | "skip" | undefined;

  /**
   * Returns the lock for a name, for example `(holdfast, name) => holdfast.semaphore(name, { permits: 3 })`.
   * @default a mutex, or a redlock if the Holdfast uses several independent servers
   */
  readonly lock?: MakeLock | undefined;
}

/**
 * A decorator for methods whose parameters begin with those of `name`. It works as a standard decorator, and with
 * TypeScript's option `experimentalDecorators`.
 */
export interface LockedDecorator<Args extends readonly unknown[], Busy> {
  /** With `experimentalDecorators`. */
  <Params extends Covering<Args>, Result>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Params) => Promise<Result>>,
  ): TypedPropertyDescriptor<(...args: Params) => Promise<Result | Busy>>;
  /** The standard decorator. */
  <This, Params extends Covering<Args>, Result>(
    method: (this: This, ...args: Params) => Promise<Result>,
    context: ClassMethodDecoratorContext<This>,
  ): (this: This, ...args: Params) => Promise<Result | Busy>;
}

/** Parameters that begin with `Args`. */
// biome-ignore lint/suspicious/noExplicitAny: further parameters of the method do not matter
export type Covering<Args extends readonly unknown[]> = readonly [...Args, ...any[]]; // oxlint-disable-line typescript/no-explicit-any

const OWN = ["name", "whenBusy", "lock", "leaseAt", "noLease"];

/**
 * Runs the method under a lock: acquires the lock, calls the method with the lease, and releases the lock.
 *
 * The parameter marked by `@HeldLease()` or `leaseAt` gets the lease. The method keeps its `this`, its result, and the
 * metadata of other decorators above or below this one. Guards, pipes and interceptors of Nest run before the lock is
 * acquired.
 *
 * The decorated method rejects with the following errors:
 *
 * - the error that the method throws, unchanged
 * - `AcquireTimeoutError`, `PausedError`, `StoreError`, `EvictionError` or `ClosedError`: the method was not called;
 *   see `whenBusy`
 * - `WorkLostError`, a LeaseLostError: the method ended after its lease
 *
 * @throws TypeError, RangeError  invalid option, or a method without a lease; thrown when the class is defined
 */
export function Locked<const Args extends readonly unknown[] = readonly []>(
  options: LockedOptions<Args> & { readonly whenBusy: "skip" },
): LockedDecorator<Args, Refusal>;
/** Runs the method under a lock. Rejects with the error of `acquire` if the lock is not acquired. */
export function Locked<const Args extends readonly unknown[] = readonly []>(
  options: LockedOptions<Args> & { readonly whenBusy?: "throw" | undefined },
): LockedDecorator<Args, never>;
export function Locked<Args extends readonly unknown[]>(
  options: LockedOptions<Args>,
): LockedDecorator<Args, Refusal> | LockedDecorator<Args, never> {
  const { name, whenBusy = "throw", lock = lockNamed, acquiring } = check(options);
  const decorate = (...decoratorArgs: readonly unknown[]): unknown => {
    const { method, key, prototype, leaseAt, replace } = decorated("Locked", decoratorArgs, options);
    const wrapper = async function (this: object, ...args: unknown[]): Promise<unknown> {
      const holdfast = holdfastOf(this, key);
      // The type of the decorator ensures that the parameters of the method begin with those of `name`.
      const named = typeof name === "string" ? name : name(...(args as unknown as Args));
      const work = async (lease: unknown): Promise<unknown> =>
        awaitable(await method.apply(this, withLease(args, leaseAt, lease)), key);
      const outcome = await runUnder(lock(holdfast, named), work, acquiring);
      if (outcome.ran) return outcome.value;
      const refusal = whenBusy === "skip" ? refusalOf(outcome.error) : undefined;
      if (refusal === undefined) throw outcome.error;
      return refusal;
    };
    markLocked(method, "Locked");
    dressAs(wrapper, method);
    if (prototype !== undefined) injectInto(prototype);
    return replace(wrapper as AnyMethod);
  };
  // `decorated` recognizes the kind of decorator by the arguments.
  return decorate as LockedDecorator<Args, Refusal>;
}

/** Refuses an Observable, because its work begins only after the method has returned. @throws TypeError */
function awaitable(value: unknown, key: string | symbol): unknown {
  if (typeof (value as { subscribe?: unknown } | undefined)?.subscribe === "function") {
    throw new TypeError(
      `@Locked on ${String(key)}: it returned an Observable, whose work would run without the lock; return a promise`,
    );
  }
  return value;
}

function check<Args extends readonly unknown[]>(
  options: LockedOptions<Args>,
): Pick<LockedOptions<Args>, "name" | "whenBusy" | "lock"> & { readonly acquiring: AcquireOptions } {
  const taken = ACQUIRE_OPTIONS.filter((option) => option !== "signal");
  const known = checkKnown<object>(options, [...OWN, ...taken] as never[]) as LockedOptions<Args>;
  const { name, whenBusy, lock, leaseAt: _, noLease: __, ...acquiring } = known;
  if (typeof name !== "string" && typeof name !== "function") {
    throw new TypeError(`name must be a string, or a function that computes one from the arguments; got ${show(name)}`);
  }
  if (whenBusy !== undefined && whenBusy !== "throw" && whenBusy !== "skip") {
    throw new TypeError(`whenBusy must be "throw" or "skip"; got ${show(whenBusy)}`);
  }
  if (lock !== undefined && typeof lock !== "function") {
    throw new TypeError(`lock must be a function; got ${show(lock)}`);
  }
  resolve(acquiring, { ...DEFAULTS, signal: undefined, amount: 1 });
  return { name, ...(whenBusy && { whenBusy }), ...(lock && { lock }), acquiring };
}

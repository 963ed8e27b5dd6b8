/** `@Locked`: a method that runs under a lock of the name that its arguments make. */
import { type AcquireOptions, DEFAULTS } from "../../index.js";
import { ACQUIRE_OPTIONS, checkKnown, resolve, show } from "../../internal.js";
import { type Refusal, refusalOf } from "../../recipes/refusal.js";
import { lockNamed, type MakeLock, runUnder } from "../../recipes/under-lock.js";
import { holdfastOf, injectInto } from "./instances.js";
import { type AnyMethod, decorated, dressAs, type LeaseParameter, markLocked, withLease } from "./marks.js";

/** How a method holds its lock. What `acquire` takes, but for `signal`, and: */
export interface LockedOptions<Args extends readonly unknown[] = readonly unknown[]>
  extends Omit<AcquireOptions, "signal">,
    LeaseParameter {
  /** Name of the lock, 1 to 512 bytes, or what makes it from the arguments. */
  readonly name: string | ((...args: Args) => string);

  /**
   * If the lock was not acquired: `"throw"` what `acquire` throws, or `"skip"` the method and resolve to a `Refusal`, which says who has it,
   * since when and why.
   * @default "throw"
   */
  readonly whenBusy?: "throw" | "skip" | undefined;

  /** The lock of a name, if it is no mutex: such as `(holdfast, name) => holdfast.semaphore(name, { permits: 3 })`. */
  readonly lock?: MakeLock | undefined;
}

/** Decorates a method whose parameters begin with those of `name`, of either kind of decorators. */
export interface LockedDecorator<Args extends readonly unknown[], Busy> {
  /** As TypeScript has them with `experimentalDecorators`. */
  <Params extends Covering<Args>, Result>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Params) => Promise<Result>>,
  ): TypedPropertyDescriptor<(...args: Params) => Promise<Result | Busy>>;
  /** Standard ones. */
  <This, Params extends Covering<Args>, Result>(
    method: (this: This, ...args: Params) => Promise<Result>,
    context: ClassMethodDecoratorContext<This>,
  ): (this: This, ...args: Params) => Promise<Result | Busy>;
}

/** Parameters that begin with those, whatever follows. */
// biome-ignore lint/suspicious/noExplicitAny: whatever else a method takes is of no account
export type Covering<Args extends readonly unknown[]> = readonly [...Args, ...any[]]; // oxlint-disable-line typescript/no-explicit-any

const OWN = ["name", "whenBusy", "lock", "leaseAt", "noLease"];

/**
 * Runs the method under a lock: acquires, calls it with the lease, releases.
 *
 * The lease comes to the parameter that `@HeldLease()` or `leaseAt` says. What the method throws is passed on, the same object;
 * what it returns, and its `this`, are kept, and so is what other decorators have left on it, above or below this one. Guards, pipes and interceptors
 * of Nest run before, without the lock.
 *
 * The decorated method rejects with what the method throws; otherwise with `AcquireTimeoutError`, `PausedError`, `StoreError`, `EvictionError` or
 * `ClosedError`, if it was not called (see `whenBusy`), or `WorkLostError`, a LeaseLostError, if it ended after its lease.
 *
 * @throws TypeError, RangeError  a wrong option, or a method that gets no lease, when the class is defined
 */
export function Locked<const Args extends readonly unknown[] = readonly []>(
  options: LockedOptions<Args> & { readonly whenBusy: "skip" },
): LockedDecorator<Args, Refusal>;
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
      // The decorator's type has matched the parameters of both.
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
  // What it is called with tells which of the two kinds it is.
  return decorate as LockedDecorator<Args, Refusal>;
}

/** An Observable has done nothing yet when it is returned. */
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
    throw new TypeError(`name must be a string, or a function that returns one for the arguments; got ${show(name)}`);
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

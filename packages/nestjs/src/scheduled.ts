/** `@Scheduled`: a method that every instance of the service calls, and one instance runs. */

import type { Refusal } from "@holdfast/recipes";
import { type Scheduled as Job, type ScheduledOptions, scheduled } from "@holdfast/recipes";
import { resolveScheduled } from "@holdfast/recipes/internal";
import { checkName } from "holdfast/internal";
import { holdfastOf, injectInto } from "./instances.js";
import {
  type AnyMethod,
  decorated,
  dressAs,
  type LeaseParameter,
  markLocked,
  refuseSignal,
  withLease,
} from "./marks.js";

/** Options of `@Scheduled`: those of `scheduled` except `signal`. */
export interface ScheduledMethodOptions extends Omit<ScheduledOptions, "signal">, LeaseParameter {}

/**
 * A method decorator. It works as a standard decorator, and with TypeScript's option `experimentalDecorators`. The
 * method gets no arguments except its lease. The decorated method may also resolve to a Refusal, so the return type of
 * a method with a result must include it.
 */
export interface ScheduledDecorator {
  /** With `experimentalDecorators`, for a method without a result. */
  <Params extends readonly unknown[]>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Params) => Promise<void>>,
  ): void;
  /** The standard decorator, for a method without a result. */
  <This, Params extends readonly unknown[]>(
    method: (this: This, ...args: Params) => Promise<void>,
    context: ClassMethodDecoratorContext<This>,
  ): void;
  /** With `experimentalDecorators`. */
  <Params extends readonly unknown[], Result>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Params) => Promise<Result>>,
  ): TypedPropertyDescriptor<(...args: Params) => Promise<Result | Refusal>>;
  /** The standard decorator. */
  <This, Params extends readonly unknown[], Result>(
    method: (this: This, ...args: Params) => Promise<Result>,
    context: ClassMethodDecoratorContext<This>,
  ): (this: This, ...args: Params) => Promise<Result | Refusal>;
}

/**
 * Runs the method on one instance, even if several instances call it at the same time. It does not schedule calls:
 * combine it with `@Cron` or `@Interval` from `@nestjs/schedule`, in either order, or call the method yourself.
 *
 * The decorated method resolves to the result of the method, or to a Refusal if it did not run here, for example
 * `already-done` if another instance has run it in this period. It rejects with the error that the method throws,
 * unchanged; see `scheduled`.
 *
 * @param name  the name of the job, 1 to 512 bytes
 * @throws TypeError, RangeError  invalid name or option, or a method without a lease; thrown when the class is defined
 */
export function Scheduled(name: string, options: ScheduledMethodOptions): ScheduledDecorator {
  checkName(name);
  const { leaseAt: _, noLease: __, ...scheduling } = options ?? {};
  refuseSignal("Scheduled", scheduling);
  // The cast is safe because `resolveScheduled` rejects options without `everyMs`.
  resolveScheduled(scheduling as ScheduledOptions);
  const decorate = (...decoratorArgs: readonly unknown[]): unknown => {
    const { method, key, prototype, leaseAt, replace } = decorated("Scheduled", decoratorArgs, options);
    const jobs = new WeakMap<object, Job<unknown>>();
    const wrapper = async function (this: object): Promise<unknown> {
      let job = jobs.get(this);
      if (job === undefined) {
        const work = (lease: unknown): unknown => method.apply(this, withLease([], leaseAt, lease));
        job = scheduled(holdfastOf(this, key), name, work, scheduling as ScheduledOptions);
        jobs.set(this, job);
      }
      const found = await job();
      return found.outcome === "ran" ? found.value : found;
    };
    markLocked(method, "Scheduled");
    dressAs(wrapper, method);
    if (prototype !== undefined) injectInto(prototype);
    return replace(wrapper as AnyMethod);
  };
  // `decorated` recognizes the kind of decorator by the arguments.
  return decorate as ScheduledDecorator;
}

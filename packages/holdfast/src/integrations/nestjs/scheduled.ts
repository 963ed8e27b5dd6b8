/** `@Scheduled`: a method that every instance of the service fires, and one of them runs. */
import { checkName } from "../../internal.js";
import type { Refusal } from "../../recipes/refusal.js";
import { resolveScheduled, type ScheduledOptions } from "../../recipes/scheduled/options.js";
import { type Scheduled as Job, scheduled } from "../../recipes/scheduled/scheduled.js";
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

/** How the method is run by one of many instances: what `scheduled` takes, but for `signal`. */
export interface ScheduledMethodOptions extends Omit<ScheduledOptions, "signal">, LeaseParameter {}

/** Decorates a method that may return a Refusal, of either kind of decorators; but for its lease it is called without arguments. */
export interface ScheduledDecorator {
  /** As TypeScript has them with `experimentalDecorators`. */
  <Params extends readonly unknown[], Result>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Params) => Promise<Result>>,
  ): TypedPropertyDescriptor<(...args: Params) => Promise<Result | Refusal>>;
  /** Standard ones. */
  <This, Params extends readonly unknown[], Result>(
    method: (this: This, ...args: Params) => Promise<Result>,
    context: ClassMethodDecoratorContext<This>,
  ): (this: This, ...args: Params) => Promise<Result | Refusal>;
}

/**
 * Lets one of all instances run the method, however many fire it at the same time. It fires nothing by itself: that is for `@Cron` and
 * `@Interval` of `@nestjs/schedule`, above or below, or whoever else calls it.
 *
 * The method resolves to what it returned, or to a Refusal where it was not run here: `already-done` when another instance has run in
 * this period, and so on. It rejects with what it throws, the same object; see `scheduled`.
 *
 * @throws TypeError, RangeError  a wrong name or option, or a method that gets no lease, when the class is defined
 */
export function Scheduled(name: string, options: ScheduledMethodOptions): ScheduledDecorator {
  checkName(name);
  const { leaseAt: _, noLease: __, ...scheduling } = options ?? {};
  refuseSignal("Scheduled", scheduling);
  // Without `everyMs`, if it was not given: that is found here.
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
  // What it is called with tells which of the two kinds it is.
  return decorate as ScheduledDecorator;
}

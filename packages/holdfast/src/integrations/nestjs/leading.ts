/** `@Leading`: a method that one instance of the service runs, for as long as it leads. */
import { checkName } from "../../internal.js";
import { type LeadOptions, resolveLead } from "../../recipes/lead/options.js";
import { type AnyMethod, decorated, type LeaseParameter, markStart, refuseSignal } from "./marks.js";

/** How to stand for election and to lead: what `lead` takes, but for `signal`. With `rejoin` true by default. */
export interface LeadingOptions extends Omit<LeadOptions, "signal">, LeaseParameter {}

/** Decorates a method of any parameters, of either kind of decorators; but for its lease it is called without arguments. */
export interface LeadingDecorator {
  /** As TypeScript has them with `experimentalDecorators`. */
  <Method extends AnyMethod>(target: object, key: string | symbol, descriptor: TypedPropertyDescriptor<Method>): void;
  /** Standard ones. */
  <This, Method extends AnyMethod>(method: Method, context: ClassMethodDecoratorContext<This>): void;
}

/**
 * Runs the method while this process leads the election of that name: from the start of the application, as soon as no other instance leads, until
 * it shuts down. The method is to go on until the `signal` of its lease aborts.
 *
 * When it returns or throws the process stands again, as long as `rejoin` is not false; what it throws is logged. `election.resign()` ends
 * it for good. Of classes whose instances live as long as the application; of others it is an error at the start.
 *
 * @throws TypeError, RangeError  a wrong name or option, or a method that gets no lease, when the class is defined
 */
export function Leading(name: string, options: LeadingOptions = {}): LeadingDecorator {
  checkName(name);
  const { leaseAt: _, noLease: __, ...leading } = options ?? {};
  refuseSignal("Leading", leading);
  resolveLead(leading);
  const decorate = (...args: readonly unknown[]): void => {
    const { method, leaseAt } = decorated("Leading", args, options);
    markStart(method, { kind: "Leading", name, options: leading, leaseAt });
  };
  // What it is called with tells which of the two kinds it is.
  return decorate as LeadingDecorator;
}

/** `@Leading`: a method that runs on one instance of the service, while that instance leads. */

import type { LeadOptions } from "@holdfast/recipes";
import { resolveLead } from "@holdfast/recipes/internal";
import { checkName } from "holdfast/internal";
import { type AnyMethod, decorated, type LeaseParameter, markStart, refuseSignal } from "./marks.js";

/** Options of `@Leading`: those of `lead` except `signal`. `rejoin` is true by default. */
export interface LeadingOptions extends Omit<LeadOptions, "signal">, LeaseParameter {}

/**
 * A method decorator. It works as a standard decorator, and with TypeScript's option `experimentalDecorators`. The
 * method gets no arguments except its lease.
 */
export interface LeadingDecorator {
  /** With `experimentalDecorators`. */
  <Method extends AnyMethod>(target: object, key: string | symbol, descriptor: TypedPropertyDescriptor<Method>): void;
  /** The standard decorator. */
  <This, Method extends AnyMethod>(method: Method, context: ClassMethodDecoratorContext<This>): void;
}

/**
 * Runs the method while this process leads an election. The process is a candidate from the start of the application to
 * its shutdown. The method should run until the `signal` of its lease aborts.
 *
 * If the method returns or throws, the process becomes a candidate again, unless `rejoin` is false. Errors are logged.
 * `election.resign()` ends the candidacy permanently. The class must have one instance that lives as long as the
 * application; otherwise the application fails to start.
 *
 * @param name  the name of the election, 1 to 512 bytes
 * @throws TypeError, RangeError  invalid name or option, or a method without a lease; thrown when the class is defined
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
  // `decorated` recognizes the kind of decorator by the arguments.
  return decorate as LeadingDecorator;
}

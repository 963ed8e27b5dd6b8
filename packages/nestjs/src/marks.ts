/** The metadata that the decorators store on methods, and the support for both kinds of decorators. */
import { show } from "holdfast/internal";

/** Any method. */
// biome-ignore lint/suspicious/noExplicitAny: each decorator has more precise types for the parameters of its methods
export type AnyMethod = (this: any, ...args: any[]) => any; // oxlint-disable-line typescript/no-explicit-any

/** The part of `reflect-metadata` that is used here. Nest loads it, and these decorators are useless without Nest. */
interface Metadata {
  defineMetadata(key: unknown, value: unknown, target: object): void;
  getMetadata(key: unknown, target: object): unknown;
  getMetadataKeys(target: object): unknown[];
}

// `reflect-metadata` adds its functions to the global object `Reflect`.
const metadata: Metadata = Reflect as unknown as Metadata;

/** The mark that `@Leading` stores on a method, where the module finds it. */
export interface StartMark {
  readonly kind: "Leading";
  /** The name of the election. */
  readonly name: string;
  readonly options: object;
  /** The index of the parameter that gets the lease. Undefined if none does. */
  readonly leaseAt: number | undefined;
}

const START: unique symbol = Symbol("holdfast:start");
const LOCKED: unique symbol = Symbol("holdfast:locked");

/**
 * Stores the mark of `@Leading` on a method.
 *
 * @throws TypeError  the method already has a decorator that gives it a lease
 */
export function markStart(method: AnyMethod, mark: StartMark): void {
  refuseTwice(method, mark.kind);
  metadata.defineMetadata(START, mark, method);
}

/** Returns the mark that `markStart` has stored on the method, if any. */
export function startMarkOf(method: AnyMethod): StartMark | undefined {
  return metadata.getMetadata(START, method) as StartMark | undefined;
}

/** Marks a method as running under a lease. @throws TypeError  it already has a decorator that gives it a lease */
export function markLocked(method: AnyMethod, decorator: "Locked" | "Scheduled"): void {
  refuseTwice(method, decorator);
  metadata.defineMetadata(LOCKED, decorator, method);
}

function refuseTwice(method: AnyMethod, decorator: string): void {
  const other = startMarkOf(method)?.kind ?? metadata.getMetadata(LOCKED, method);
  if (other === undefined) return;
  throw new TypeError(
    `@${decorator} on ${method.name}: it already has @${String(other)}, and a method gets only one lease`,
  );
}

/**
 * Copies the name, the length and the metadata of other decorators, such as routes, guards and cron, to the wrapper.
 */
export function dressAs(wrapper: AnyMethod, from: AnyMethod): void {
  for (const key of metadata.getMetadataKeys(from)) {
    metadata.defineMetadata(key, metadata.getMetadata(key, from), wrapper);
  }
  for (const property of ["name", "length"]) {
    const descriptor = Object.getOwnPropertyDescriptor(from, property);
    if (descriptor !== undefined) Object.defineProperty(wrapper, property, descriptor);
  }
}

const leaseParameters = new WeakMap<object, Map<string | symbol, number>>();

/**
 * Marks the parameter that gets the lease. Needs TypeScript's option `experimentalDecorators`. There are no standard
 * decorators for parameters; use `leaseAt` with standard decorators.
 *
 * @throws TypeError  two parameters of a method are marked, or a constructor parameter is; thrown when the class is
 *                    defined
 */
export function HeldLease(): ParameterDecorator {
  return (target, key, index) => {
    if (key === undefined) throw new TypeError("@HeldLease is for a parameter of a method, not of a constructor");
    const ofClass = leaseParameters.get(target) ?? new Map<string | symbol, number>();
    if (ofClass.has(key))
      throw new TypeError(`@HeldLease can mark only one parameter of ${String(key)}, but two have it`);
    leaseParameters.set(target, ofClass.set(key, index));
  };
}

/** How the method gets its lease. Use exactly one of `@HeldLease()`, `leaseAt` and `noLease`. */
export interface LeaseParameter {
  /** The index of the parameter that gets the lease, 0 to 255. An alternative to `@HeldLease()`. */
  readonly leaseAt?: number | undefined;
  /** True if the method needs no lease because it neither checks `signal` nor passes `token` on. @default false */
  readonly noLease?: boolean | undefined;
}

/** Refuses the option `signal`, because methods end with their application or their lease. @throws TypeError */
export function refuseSignal(decorator: string, options: object): void {
  if (!Object.hasOwn(options, "signal")) return;
  throw new TypeError(`@${decorator} has no option "signal": to stop the method, use the signal of its lease`);
}

/** The method to which a decorator of either kind is applied. */
export interface Decorated {
  readonly method: AnyMethod;
  readonly key: string | symbol;
  /** The prototype of its class. Undefined with standard decorators. */
  readonly prototype: object | undefined;
  readonly leaseAt: number | undefined;
  /** Returns the value that the decorator must return so that `wrapper` replaces the method. */
  replace(wrapper: AnyMethod): unknown;
}

/**
 * Reads the arguments of a decorator of either kind.
 *
 * @param decorator  the name of the decorator, for error messages
 * @throws TypeError  the decorator is not on an instance method, or the method does not get its lease in exactly one
 *                    way
 */
export function decorated(decorator: string, args: readonly unknown[], options: LeaseParameter): Decorated {
  const [first, second, third] = args;
  if (typeof first === "function" && typeof second === "object" && second !== null && "kind" in second) {
    const context = second as ClassMethodDecoratorContext;
    if (context.kind !== "method" || context.static) throw notAMethod(decorator, context.name);
    const leaseAt = leaseAtOf(decorator, context.name, options, undefined);
    const method = first as AnyMethod;
    return { method, key: context.name, prototype: undefined, leaseAt, replace: (wrapper) => wrapper };
  }
  const key = second as string | symbol;
  const descriptor = third as TypedPropertyDescriptor<AnyMethod> | undefined;
  if (typeof first !== "object" || first === null || typeof descriptor?.value !== "function") {
    throw notAMethod(decorator, key);
  }
  const leaseAt = leaseAtOf(decorator, key, options, leaseParameters.get(first)?.get(key));
  return {
    method: descriptor.value,
    key,
    prototype: first,
    leaseAt,
    replace(wrapper) {
      descriptor.value = wrapper;
      return descriptor;
    },
  };
}

function notAMethod(decorator: string, key: unknown): TypeError {
  return new TypeError(`@${decorator} is for instance methods; ${String(key)} is not one`);
}

function leaseAtOf(
  decorator: string,
  key: string | symbol,
  { leaseAt, noLease = false }: LeaseParameter,
  marked: number | undefined,
): number | undefined {
  const where = `@${decorator} on ${String(key)}`;
  if (typeof noLease !== "boolean") {
    throw new TypeError(`${where}: noLease must be true or false; got ${show(noLease)}`);
  }
  if (leaseAt !== undefined && !(Number.isInteger(leaseAt) && leaseAt >= 0 && leaseAt < 256)) {
    throw new TypeError(`${where}: leaseAt must be the index of a parameter, 0 to 255; got ${show(leaseAt)}`);
  }
  const ways = [marked !== undefined, leaseAt !== undefined, noLease].filter(Boolean).length;
  if (ways === 1) return marked ?? leaseAt;
  throw new TypeError(
    ways === 0
      ? `${where}: the method needs its lease to detect a loss. Mark a parameter with @HeldLease() or set leaseAt, or set noLease: true if it does not use the lease`
      : `${where}: use only one of @HeldLease(), leaseAt and noLease; got ${ways}`,
  );
}

/** Returns a copy of the arguments with the lease at index `leaseAt`. */
export function withLease(args: readonly unknown[], leaseAt: number | undefined, lease: unknown): unknown[] {
  if (leaseAt === undefined) return [...args];
  const passed = [...args];
  passed[leaseAt] = lease;
  return passed;
}

/** What decorators leave on methods, and how they find out which of the two kinds of decorators they are. */
import { show } from "../../internal.js";

/** A method as a decorator sees it. */
// biome-ignore lint/suspicious/noExplicitAny: parameters of any method, which each decorator types for itself
export type AnyMethod = (this: any, ...args: any[]) => any; // oxlint-disable-line typescript/no-explicit-any

/** The part of `reflect-metadata` that is used here. Nest loads it; without Nest there is no use for these decorators. */
interface Metadata {
  defineMetadata(key: unknown, value: unknown, target: object): void;
  getMetadata(key: unknown, target: object): unknown;
  getMetadataKeys(target: object): unknown[];
}

// What Nest has added to the global object.
const metadata: Metadata = Reflect as unknown as Metadata;

/** What `@Leading` leaves on a method, for the module to find. */
export interface StartMark {
  readonly kind: "Leading";
  /** Name of the election. */
  readonly name: string;
  readonly options: object;
  /** Which parameter gets the lease; undefined if none. */
  readonly leaseAt: number | undefined;
}

const START: unique symbol = Symbol("holdfast:start");
const LOCKED: unique symbol = Symbol("holdfast:locked");

/** @throws TypeError  it has one already: a method runs under one lease */
export function markStart(method: AnyMethod, mark: StartMark): void {
  refuseTwice(method, mark.kind);
  metadata.defineMetadata(START, mark, method);
}

/** What `markStart` has left there. */
export function startMarkOf(method: AnyMethod): StartMark | undefined {
  return metadata.getMetadata(START, method) as StartMark | undefined;
}

/** @throws TypeError  it runs under a lease already */
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

/** Whatever other decorators have left on `from` stays: routes, guards, cron. Its name and length as well. */
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
 * The parameter that gets the lease, for the decorators that TypeScript has with `experimentalDecorators`; with standard ones, which
 * there are none of for parameters, say `leaseAt`.
 */
export function HeldLease(): ParameterDecorator {
  return (target, key, index) => {
    if (key === undefined) throw new TypeError("@HeldLease is for a parameter of a method, not of a constructor");
    const ofClass = leaseParameters.get(target) ?? new Map<string | symbol, number>();
    if (ofClass.has(key)) throw new TypeError(`@HeldLease is for one parameter of ${String(key)}, but two have it`);
    leaseParameters.set(target, ofClass.set(key, index));
  };
}

/** How a decorator is to hand over the lease. */
export interface LeaseParameter {
  /** Index of the parameter that gets the lease, from 0, where no parameter is marked by `@HeldLease()`. */
  readonly leaseAt?: number | undefined;
  /** The method needs no lease: it does not look at `signal`, and hands no `token` on. */
  readonly noLease?: boolean | undefined;
}

/** @throws TypeError  there is a signal: methods end with their application, or their lease */
export function refuseSignal(decorator: string, options: object): void {
  if (!Object.hasOwn(options, "signal")) return;
  throw new TypeError(`@${decorator} has no option "signal": a method ends with its lease or with its application`);
}

/** A decorated method, whichever kind of decorators it has. */
export interface Decorated {
  readonly method: AnyMethod;
  readonly key: string | symbol;
  /** Its class's prototype; undefined with standard decorators. */
  readonly prototype: object | undefined;
  readonly leaseAt: number | undefined;
  /** What the decorator returns to put `wrapper` in its place. */
  replace(wrapper: AnyMethod): unknown;
}

/** @throws TypeError  it is no method, or its lease is not asked for in exactly one way */
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
      ? `${where}: the method must get its lease, or it cannot notice that the lease is lost: mark a parameter with @HeldLease(), or set leaseAt; otherwise set noLease: true`
      : `${where}: use only one of @HeldLease(), leaseAt and noLease; got ${ways}`,
  );
}

/** The arguments with the lease among them. */
export function withLease(args: readonly unknown[], leaseAt: number | undefined, lease: unknown): unknown[] {
  if (leaseAt === undefined) return [...args];
  const passed = [...args];
  passed[leaseAt] = lease;
  return passed;
}

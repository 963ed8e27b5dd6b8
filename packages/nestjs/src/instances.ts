/** Finds the Holdfast for an instance of a class with decorated methods. */
import { Inject } from "@nestjs/common";
import type { Holdfast } from "holdfast";

/** The injection token of the module's Holdfast. */
export const HOLDFAST: unique symbol = Symbol("holdfast");

/** Injects the module's Holdfast into a constructor parameter or a property. */
export function InjectHoldfast(): PropertyDecorator & ParameterDecorator {
  return Inject(HOLDFAST);
}

/**
 * The property into which Nest injects the Holdfast, in instances of classes with `@Locked` or `@Scheduled` methods.
 */
const INJECTED: unique symbol = Symbol("holdfast:injected");

/** A running module with its Holdfast. */
export interface Home {
  readonly holdfast: Holdfast;
  /** Whether the application of this module has created the instance. */
  has(instance: object): boolean;
}

const homes = new Set<Home>();
const known = new WeakMap<object, Holdfast>();

/** Registers a running module. @returns a function that removes the module */
export function settleIn(home: Home): () => void {
  homes.add(home);
  return () => homes.delete(home);
}

/**
 * Lets Nest inject the Holdfast into instances of a class. An application that lacks the module then fails to start.
 */
export function injectInto(prototype: object): void {
  Inject(HOLDFAST)(prototype, INJECTED);
}

/**
 * Returns the Holdfast for an instance. If none was injected, which standard decorators cannot do, returns the Holdfast
 * of the only running module or, if several modules run, of the one whose application has created the instance.
 *
 * @param key  the name of the method, for the error message
 * @throws TypeError  the method was called without its instance, or no module provides a Holdfast for the instance
 */
export function holdfastOf(instance: object | undefined, key: string | symbol): Holdfast {
  if (instance === undefined || instance === null) {
    throw new TypeError(
      `${String(key)} has @Locked or @Scheduled and was called without its instance: call it as a method, or bind it`,
    );
  }
  const injected = (instance as { [INJECTED]?: Holdfast })[INJECTED] ?? known.get(instance);
  if (injected !== undefined) return injected;
  const [only, ...others] = homes;
  const home = others.length === 0 ? only : [...homes].find((each) => each.has(instance));
  if (home === undefined) {
    throw new TypeError(
      `${String(key)} has @Locked or @Scheduled, but no running HoldfastModule provides a Holdfast for its instance: import the module, let Nest create the instance, and do not call the method after shutdown`,
    );
  }
  known.set(instance, home.holdfast);
  return home.holdfast;
}

/** Which Holdfast an instance that Nest has made stands on. */
import { Inject } from "@nestjs/common";
import type { Holdfast } from "../../index.js";

/** What the Holdfast of the module is injected by. */
export const HOLDFAST: unique symbol = Symbol("holdfast");

/** A parameter of a constructor, or a property, that gets the module's Holdfast. */
export function InjectHoldfast(): PropertyDecorator & ParameterDecorator {
  return Inject(HOLDFAST);
}

/** Where Nest puts it, in each instance of a class with `@Locked` methods. */
const INJECTED: unique symbol = Symbol("holdfast:injected");

/** A Holdfast that a module has made, and whether that module has made this instance. */
export interface Home {
  readonly holdfast: Holdfast;
  has(instance: object): boolean;
}

const homes = new Set<Home>();
const known = new WeakMap<object, Holdfast>();

/** That module lives. @returns it does no longer */
export function settleIn(home: Home): () => void {
  homes.add(home);
  return () => homes.delete(home);
}

/** Instances of that class get the Holdfast from Nest: so a class in an application without the module does not start. */
export function injectInto(prototype: object): void {
  Inject(HOLDFAST)(prototype, INJECTED);
}

/**
 * The Holdfast of an instance. With standard decorators, which cannot ask Nest for it, that of the one module there is, or of the one
 * that has made it.
 *
 * @param key  of the method, for the message
 * @throws TypeError  Nest has not made it, or there is none
 */
export function holdfastOf(instance: object | undefined, key: string | symbol): Holdfast {
  if (instance === undefined || instance === null) {
    throw new TypeError(
      `${String(key)} is locked and was called without its instance: call it as a method, or bind it`,
    );
  }
  const injected = (instance as { [INJECTED]?: Holdfast })[INJECTED] ?? known.get(instance);
  if (injected !== undefined) return injected;
  const [only, ...others] = homes;
  const home = others.length === 0 ? only : [...homes].find((each) => each.has(instance));
  if (home === undefined) {
    throw new TypeError(
      `${String(key)} is locked, and there is no Holdfast for its instance: import HoldfastModule.forRoot, and let Nest make the instance`,
    );
  }
  known.set(instance, home.holdfast);
  return home.holdfast;
}

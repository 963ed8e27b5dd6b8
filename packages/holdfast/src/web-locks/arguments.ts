/**
 * Reads the arguments of `request`, with the conversions of Web IDL and the checks of the Web Locks specification, in
 * the order that these standards require.
 */
import { show } from "../core/keys.js";
import { isAbortSignal, nativeSignal } from "../core/options.js";
import { domException } from "./errors.js";
import type { WebLockCallback, WebLockMode } from "./types.js";

/** The arguments of `request`, checked and with defaults. */
export interface Asked {
  readonly name: string;
  readonly mode: WebLockMode;
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly signal: AbortSignal | undefined;
  readonly callback: WebLockCallback<unknown>;
}

/**
 * Converts and checks the arguments of `request`.
 *
 * @throws TypeError     an argument is missing or cannot be converted
 * @throws DOMException  NotSupportedError: the name or a combination of options is not allowed
 * @throws the signal's reason, if the signal has aborted
 */
export function readArguments(args: readonly unknown[]): Asked {
  if (args.length < 2) throw new TypeError(`request needs 2 arguments, name and callback; got ${args.length}`);
  const [named, given, callback] = args.length === 2 ? [args[0], undefined, args[1]] : args;
  // A template literal throws for symbols, as the specification requires.
  const name = `${named as string}`;
  // Web IDL requires that the options be read and converted one by one, in this order.
  const options = optionsOf(given);
  const ifAvailable = Boolean(options.ifAvailable);
  const mode = modeOf(options.mode);
  const signal = signalOf(options.signal);
  const steal = Boolean(options.steal);
  if (typeof callback !== "function") throw new TypeError(`callback must be a function; got ${show(callback)}`);
  const asked = { name, mode, ifAvailable, steal, signal, callback: callback as WebLockCallback<unknown> };
  const conflict = conflictIn(asked);
  if (conflict !== undefined) throw domException(conflict, "NotSupportedError");
  asked.signal?.throwIfAborted();
  return asked;
}

function optionsOf(given: unknown): Readonly<Record<string, unknown>> {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object" && typeof given !== "function")
    throw new TypeError(`options must be an object; got ${show(given)}`);
  return given as Readonly<Record<string, unknown>>;
}

function modeOf(given: unknown): WebLockMode {
  if (given === undefined) return "exclusive";
  const mode = `${given as string}`;
  if (mode !== "exclusive" && mode !== "shared")
    throw new TypeError(`mode must be "exclusive" or "shared"; got ${show(given)}`);
  return mode;
}

function signalOf(given: unknown): AbortSignal | undefined {
  if (given === undefined) return undefined;
  if (!isAbortSignal(given)) throw new TypeError(`signal must be an AbortSignal; got ${show(given)}`);
  return nativeSignal(given);
}

function conflictIn({ name, mode, ifAvailable, steal, signal }: Omit<Asked, "callback">): string | undefined {
  if (name.startsWith("-")) return `A lock name must not begin with "-"; got ${show(name)}.`;
  if (steal && ifAvailable) return "The options steal and ifAvailable cannot be combined.";
  if (steal && mode === "shared") return "The option steal requires exclusive mode.";
  if (signal !== undefined && steal) return "The options signal and steal cannot be combined.";
  if (signal !== undefined && ifAvailable) return "The options signal and ifAvailable cannot be combined.";
  return undefined;
}

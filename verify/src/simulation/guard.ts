/**
 * Detects uses of real time and randomness during a simulated run.
 *
 * During a run, every clock reading, timer and random number is recorded if the code under test requested it. Other
 * code in this process, such as a test runner, is not affected.
 */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";

/** A turn of the real event loop, which the simulation uses to let promises settle. */
export const realTurn: (resume: () => void) => void = setImmediate;

const OURS = /(?:packages\/(?:holdfast|embedded)|verify)\/(?:src|dist|tests)\//;
const GUARD = /\bguard\.[jt]s\b/;

type AnyFunction = (...inputs: unknown[]) => unknown;

/** Forbidden calls of the code under test; empty in a run that can be replayed. */
export class Guard {
  readonly found: string[] = [];
  readonly #undo: (() => void)[] = [];

  /** Starts recording. */
  start(): void {
    for (const name of ["setTimeout", "setInterval", "setImmediate"]) this.#patch(globalThis, name);
    this.#patch(Math, "random");
    this.#patch(performance, "now");
    this.#patch(crypto, "randomBytes");
    this.#patch(crypto, "randomUUID");
    this.#patchDate();
    syncBuiltinESMExports();
  }

  /** Restores the original functions. */
  stop(): void {
    for (const undo of this.#undo.splice(0).reverse()) undo();
    syncBuiltinESMExports();
  }

  #patch(owner: object, name: string): void {
    const record = owner as Record<string, unknown>;
    const isOwn = Object.hasOwn(owner, name);
    const original = record[name] as AnyFunction;
    const note = (): void => this.#note(name);
    record[name] = function patched(this: unknown, ...inputs: unknown[]): unknown {
      note();
      return original.apply(this, inputs);
    };
    this.#undo.push(() => {
      if (isOwn) record[name] = original;
      else delete record[name];
    });
  }

  #patchDate(): void {
    const original = globalThis.Date;
    const note = (what: string): void => this.#note(what);
    globalThis.Date = new Proxy(original, {
      construct(target, inputs, newTarget) {
        if (inputs.length === 0) note("new Date");
        return Reflect.construct(target, inputs, newTarget) as object;
      },
      get(target, property, receiver) {
        if (property === "now") note("Date.now");
        return Reflect.get(target, property, receiver) as unknown;
      },
    });
    this.#undo.push(() => {
      globalThis.Date = original;
    });
  }

  #note(what: string): void {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 10;
    const callers = (new Error().stack ?? "").split("\n").slice(1);
    Error.stackTraceLimit = stackTraceLimit;
    const caller = callers.find((line) => !GUARD.test(line) && !line.includes("node:"));
    if (caller !== undefined && OURS.test(caller))
      this.found.push(`${what} was used${caller.replace(/^\s*at/, " at")}`);
  }
}

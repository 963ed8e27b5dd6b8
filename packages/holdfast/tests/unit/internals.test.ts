/** How other entry points find the internals of a Holdfast, and how they reject other values. */
import { embedded } from "@holdfast/embedded";
import { afterEach, expect, test } from "vitest";
import { UnsupportedError } from "../../src/core/errors.js";
import { DEFAULTS } from "../../src/core/options.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { anyInternalsOf, internalsOf, withInternals } from "../../src/internals.js";
import { ScriptedLock, ScriptedStore } from "./scripted-lock.js";

const made: Holdfast[] = [];
afterEach(async () => {
  for (const holdfast of made.splice(0)) await holdfast.close();
});

const facts = (): Parameters<typeof withInternals>[1] => ({
  session: new ScriptedLock().session,
  defaults: { ...DEFAULTS, signal: undefined, amount: 1 },
  prefix: "hf",
  clientName: "",
});

test("every Holdfast has its own internals", () => {
  for (const prefix of ["a", "b"]) {
    const holdfast = createHoldfast({ store: embedded(), prefix, clientName: `${prefix} 1`, leaseMs: 4_000 });
    made.push(holdfast);
  }
  for (const [i, prefix] of ["a", "b"].entries()) {
    const found = internalsOf(made[i], "any");
    expect(found).toMatchObject({ prefix, clientName: `${prefix} 1`, defaults: { leaseMs: 4_000 } });
    expect(found.session.inboxPrefix).toBe(`${prefix}:in:`);
    expect(anyInternalsOf(made[i])).toBe(found);
  }
});

test("internals are returned unchanged", () => {
  const [holdfast, standing] = [{}, facts()];
  expect(withInternals(holdfast, standing)).toBe(holdfast);
  expect(internalsOf(holdfast, "any")).toBe(standing);
});

test.each([
  [undefined, "got undefined"],
  [null, "got null"],
  ["redis://localhost", 'got "redis://localhost"'],
  [7, "got 7"],
  [{}, "got an object"],
  [() => {}, "got a function"],
])("%o is rejected with its description", (other, says) => {
  for (const find of [() => internalsOf(other, "any"), () => anyInternalsOf(other)]) {
    expect(find).toThrow(TypeError);
    expect(find).toThrow(`holdfast must be the result of createHoldfast; ${says}`);
  }
});

test("a copy of a Holdfast is rejected because it may lack close()", () => {
  const holdfast = createHoldfast({ store: embedded() });
  made.push(holdfast);
  expect(() => internalsOf({ ...holdfast }, "any")).toThrow(TypeError);
});

test("a Holdfast on several servers is found only by functions that support it", () => {
  const standing = { ...facts(), servers: [new ScriptedStore()] };
  const holdfast = withInternals({}, standing);
  expect(anyInternalsOf(holdfast)).toBe(standing);
  const find = (): unknown => internalsOf(holdfast, "report");
  expect(find).toThrow(UnsupportedError);
  expect(find).toThrow("cannot be on several independent servers");
  expect(find).toThrow(expect.objectContaining({ lockName: "report" }));
});

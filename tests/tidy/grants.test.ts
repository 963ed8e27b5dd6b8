/** Every script that can make somebody a holder says so, since only then does it stop before a server that may not grant. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Script } from "../../packages/holdfast/src/core/store.js";
import * as own from "../../packages/holdfast/src/generated/scripts.js";
import { ROOT } from "./sources.js";

const GENERATED = join(ROOT, "packages/holdfast/src/generated");
const families: readonly Record<string, Script>[] = await Promise.all(
  readdirSync(GENERATED)
    .filter((file) => file.endsWith("-scripts.ts"))
    .map((file) => import(join(GENERATED, file))),
);
const scripts: readonly Script[] = [own, ...families].flatMap((file) => Object.values<Script>(file));

/** Writes of a holder, in whatever kind keeps it: the key of a lock, or an owner's field of a state. */
const MAKES_A_HOLDER = [
  /redis\.call\('(?:SET|PSETEX|SETNX|SETEX)', KEYS\[1\]/,
  /redis\.call\('(?:SET|PSETEX|SETNX|SETEX)', KEYS\[\d \* member - 3\]/,
  /redis\.call\('HSET', KEYS\[1\],\s*(?:owner|holder)\b/,
  /redis\.call\('HSET', KEYS\[1\], 'used', used,\s*owner\b/,
];

/** They write a holder that was one already, and why that is no grant. */
const PUT_BACK: ReadonlySet<string> = new Set([
  // A lease that is still good, on a server that has lost it; it has no other use.
  "mutex/reclaim",
  "permits/reclaim",
  "recipes/coalesce/reclaim",
  // The same grant, which is confirmed by now.
  "permits/extend",
  // Whoever the record beside the lock names.
  "interop/timestamp/extend",
  // Whoever writes goes on reading.
  "interop/redisson/read-write/downgrade",
]);

/** They write a key of that place which nobody holds: a count, a value, a pause. */
const HELD_BY_NOBODY: ReadonlySet<string> = new Set([
  "interop/redisson/latch/try-set-count",
  "pausing/extend",
  "recipes/counter/change",
  "recipes/fence/set",
]);

test("a script that writes a holder is marked as one that grants", () => {
  expect(scripts.length).toBeGreaterThan(40);
  const makers = scripts.filter(
    ({ name, source }) => !HELD_BY_NOBODY.has(name) && MAKES_A_HOLDER.some((pattern) => pattern.test(source)),
  );
  expect(makers.length).toBeGreaterThan(10);
  const unmarked = makers.filter(({ name, grants }) => !grants && !PUT_BACK.has(name)).map(({ name }) => name);
  expect(unmarked).toEqual([]);
  expect([...PUT_BACK].filter((name) => !makers.some((maker) => maker.name === name))).toEqual([]);
});

test("what a marked script is while nothing may be granted has no hand-off left", () => {
  const twofold = scripts.filter((script) => script.withoutGrant !== undefined);
  expect(twofold.map(({ name }) => name).sort()).toEqual([
    "condition/leave",
    "condition/wait",
    "election/resign",
    "mutex/force-release",
    "mutex/leave",
    "mutex/release",
    "pausing/pause",
    "pausing/pause-permits",
    "pausing/resume",
    "pausing/resume-permits",
    "permits/force-release",
    "permits/leave",
    "permits/release",
    "permits/resize",
    "recipes/coalesce/end",
    "recipes/coalesce/leave",
  ]);
  for (const { name, source, withoutGrant } of twofold) {
    expect(withoutGrant?.source, name).toMatch(/\n(?:handOff|grantHeads) = function\(\) end\n/);
    expect(source, name).not.toMatch(/= function\(\) end/);
  }
});

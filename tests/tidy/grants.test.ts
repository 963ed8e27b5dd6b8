/** Checks that every script that can grant a lock is marked. Only marked scripts stop if a server may not grant. */
import { expect, test } from "vitest";
import type { Script } from "../../packages/holdfast/src/core/store.js";
import * as own from "../../packages/holdfast/src/generated/scripts.js";
import * as interop from "../../packages/interop/src/generated/scripts.js";
import * as recipes from "../../packages/recipes/src/generated/scripts.js";
import * as redlockCompat from "../../packages/redlock-compat/src/generated/scripts.js";

const scripts: readonly Script[] = [own, interop, recipes, redlockCompat].flatMap((all) => Object.values<Script>(all));

/** Commands that write a holder: the key of a lock, or the field of an owner. */
const MAKES_A_HOLDER = [
  /redis\.call\('(?:SET|PSETEX|SETNX|SETEX)', KEYS\[1\]/,
  /redis\.call\('(?:SET|PSETEX|SETNX|SETEX)', KEYS\[\d \* member - 3\]/,
  /redis\.call\('HSET', KEYS\[1\],\s*(?:owner|holder)\b/,
  /redis\.call\('HSET', KEYS\[1\], 'used', used,\s*owner\b/,
];

/** Scripts that write an existing holder, with the reason why this is not a grant. */
const PUT_BACK: ReadonlySet<string> = new Set([
  // Restores a lease that is still valid on a server that has lost it.
  "mutex/reclaim",
  "permits/reclaim",
  "recipes/coalesce/reclaim",
  // Writes the same grant again after it was confirmed.
  "permits/extend",
  // Writes the holder that the record next to the lock names.
  "interop/timestamp/extend",
  // The writer becomes a reader.
  "interop/redisson/read-write/downgrade",
]);

/** Scripts whose first key has no holder: a count, a value or a pause. */
const HELD_BY_NOBODY: ReadonlySet<string> = new Set([
  "interop/redisson/latch/try-set-count",
  "pausing/extend",
  "recipes/counter/change",
  "recipes/fence/set",
]);

test("every script that writes a holder is marked as granting", () => {
  expect(scripts.length).toBeGreaterThan(40);
  const makers = scripts.filter(
    ({ name, source }) => !HELD_BY_NOBODY.has(name) && MAKES_A_HOLDER.some((pattern) => pattern.test(source)),
  );
  expect(makers.length).toBeGreaterThan(10);
  const unmarked = makers.filter(({ name, grants }) => !grants && !PUT_BACK.has(name)).map(({ name }) => name);
  expect(
    unmarked,
    "each script writes its first key as if that were a holder. If it grants, add a line GRANTS before REPLY in its " +
      "header (CONTRIBUTING.md, Write a script); otherwise name it in PUT_BACK or HELD_BY_NOBODY in this file",
  ).toEqual([]);
  expect([...PUT_BACK].filter((name) => !makers.some((maker) => maker.name === name))).toEqual([]);
});

test("the variant of a script for servers that may not grant contains no hand-off", () => {
  const twofold = scripts.filter((script) => script.withoutGrant !== undefined);
  expect(twofold.map(({ name }) => name).sort(), "the scripts with GRANTS by hand-off; add a new one here").toEqual([
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

/**
 * Random programs of permit scripts give the same replies on the embedded server as on Redis and leave the same state,
 * even if a key is deleted or overwritten in between.
 */

import { env } from "node:process";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import {
  permitsAcquire,
  permitsAdopt,
  permitsConfirm,
  permitsExtend,
  permitsForceRelease,
  permitsInspect,
  permitsLeave,
  permitsRelease,
  permitsResize,
  permitsReweigh,
} from "../../src/generated/scripts.js";
import { embeddedSide, normalise, QUANTUM_MS, realSide, type Side } from "./two-servers.js";

const INBOX = "hf:in:";
const BASE = "hf:semaphore:{a b🔐}";
const KEYS: Readonly<Record<string, string>> = {
  state: BASE,
  fence: `${BASE}:fence`,
  holders: `${BASE}:holders`,
  slots: `${BASE}:slots`,
  queue: `${BASE}:queue`,
  pause: `${BASE}:pause`,
};

const SCRIPTS: Readonly<Record<string, Script>> = Object.fromEntries(
  [
    permitsAcquire,
    permitsRelease,
    permitsExtend,
    permitsLeave,
    permitsAdopt,
    permitsConfirm,
    permitsForceRelease,
    permitsReweigh,
    permitsResize,
    permitsInspect,
  ].map((script) => [script.name, script]),
);

/** One step: the name of a script, or the name of a key that is deleted or, with `text`, overwritten. */
interface Step {
  readonly call: string;
  readonly args: Readonly<Record<string, string | number>>;
}

const leaseMs = fc.constantFrom(1, 2, 5).map((times) => times * QUANTUM_MS);
const weight = fc.integer({ min: 1, max: 6 });
/** Clients A and B are subscribed; C has crashed. */
const owner = fc
  .tuple(
    fc.constantFrom("A", "B", "C"),
    fc.constantFrom(1, 2, 3),
    fc.constantFrom(1, 2, 4),
    fc.constantFrom("", "/l%20x", `/;${QUANTUM_MS}`),
  )
  .map(([client, number, amount, label]) => `${client}/${number}/${2 * QUANTUM_MS}/${amount}${label}`);
/** How many grants ago the token was issued. The token is read on each side when the step runs. */
const token = fc.constantFrom("@0", "@0", "@-1", "@1", "1600000000000000", "4000000000000000");

function step(script: Script, args: Readonly<Record<string, fc.Arbitrary<string | number>>>): fc.Arbitrary<Step> {
  return fc
    .record(args)
    .map((chosen) => ({ call: script.name, args: { inbox: INBOX, note: "", numbered: 3, ...chosen } }));
}

const takes = step(permitsAcquire, {
  owner,
  leaseMs,
  weight,
  enqueue: fc.constantFrom(0, 1, 1, 2),
  declared: fc.constantFrom(5, 5, 5, 6),
});
const gives = step(permitsRelease, { owner, token });
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  takes,
  takes,
  gives,
  gives,
  step(permitsExtend, { owner, token, leaseMs }),
  step(permitsLeave, { owner }),
  step(permitsConfirm, { owner, token, leaseMs }),
  step(permitsAdopt, { owner, from: owner, token, leaseMs }),
  step(permitsForceRelease, { owner: fc.oneof(owner, fc.constant("")), token: fc.oneof(token, fc.constant("")) }),
  step(permitsReweigh, { owner, token, weight, change: fc.constantFrom(1, 2, 3) }),
  step(permitsResize, {
    size: fc.integer({ min: 1, max: 8 }),
    declared: fc.constantFrom(5, 7),
    keepMs: fc.constant(20 * QUANTUM_MS),
  }),
  step(permitsInspect, { owner, most: fc.constantFrom(1, 100), mostHeld: fc.constantFrom(1, 100) }),
  fc.constantFrom(...Object.keys(KEYS)).map((call) => ({ call, args: {} })),
  fc.constant({ call: "pause", args: { text: "pause/1/2/1/r/by/why" } }),
);

let sides: [Side, Side];
beforeAll(async () => {
  const channels = [`${INBOX}A`, `${INBOX}B`];
  sides = [await embeddedSide(channels), await realSide(channels)];
});
afterAll(async () => {
  await Promise.all((sides ?? []).map((side) => side.stop()));
});

/** Runs a program on one side and returns its visible effects in order. */
async function play(side: Side, program: readonly Step[]): Promise<unknown> {
  await side.clear();
  const seen: unknown[] = [];
  for (const { call, args } of program) {
    const script = SCRIPTS[call];
    const keys = (script?.keys ?? [call]).map((name) => KEYS[name] as string);
    const token = await tokenOf(side, args.token ?? "");
    const named: Step["args"] = { ...args, token, grants: `${args.owner} ${token} ${args.leaseMs}` };
    const words = await Promise.all((script?.args ?? []).map((name) => tokenOf(side, named[name] ?? "")));
    const written = `redis.call('SET', KEYS[1], '${args.text}', 'PX', ${4 * QUANTUM_MS}) return 1`;
    const source = script?.source ?? (args.text === undefined ? "return redis.call('DEL', KEYS[1])" : written);
    seen.push({ call, reply: await side.eval(source, keys, words) });
    seen.push(await side.messages());
    for (const { key, leftMs } of await side.dump()) expect(leftMs, key).toBeGreaterThan(0);
  }
  return normalise([...seen, await side.dump()]);
}

async function tokenOf(side: Side, value: string | number): Promise<string | number> {
  if (typeof value !== "string" || !value.startsWith("@")) return value;
  const last = await side.eval("return redis.call('GET', KEYS[1])", [KEYS.fence as string], []);
  return Number(last ?? 1) + Number(value.slice(1));
}

test("random programs of permit scripts give the same replies, keys, messages and TTLs on both servers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 2, maxLength: 25 }), async (program) => {
      const [ours, theirs] = await Promise.allSettled(sides.map((side) => play(side, program)));
      expect(ours).toEqual(theirs);
      expect(ours).toMatchObject({ status: "fulfilled" });
    }),
    { numRuns: Number(env.HOLDFAST_DIFFERENTIAL_RUNS ?? 200) },
  );
});

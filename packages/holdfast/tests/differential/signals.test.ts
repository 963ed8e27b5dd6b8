/**
 * Random programs of condition, latch, barrier and election scripts give the same replies on the embedded server as on
 * Redis and leave the same state, even if a key is deleted in between.
 */
import { env } from "node:process";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import * as scripts from "../../src/generated/scripts.js";
import { embeddedSide, normalise, QUANTUM_MS, realSide, type Side } from "./two-servers.js";

const INBOX = "hf:in:";
const CHANNEL = "hf:election:{e}:leader";

/** The keys of the scripts of each kind, by their names in the scripts. */
const KINDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  condition: {
    ...{ lock: "l", fence: "l:fence", queue: "l:queue", handed: "l:handed", pause: "l:pause" },
    ...{ condition: "l:c", signalled: "l:c:signalled" },
  },
  "count-down-latch": { latch: "d", counted: "d:counted", waiters: "d:waiters" },
  barrier: { barrier: "b", arrived: "b:arrived", leases: "b:leases", ended: "b:ended" },
  election: { lock: "e", fence: "e:fence", queue: "e:queue", handed: "e:handed", pause: "e:pause", record: "e:value" },
};
/** Scripts of other kinds that a kind needs to make grants. */
const ALSO: Readonly<Record<string, readonly Script[]>> = {
  condition: [scripts.mutexAcquire, scripts.mutexRelease],
  election: [scripts.mutexAcquire, scripts.mutexForceRelease],
};

/** Clients A and B are subscribed; C has crashed. */
const owner = fc
  .tuple(fc.constantFrom("A", "B", "C"), fc.constantFrom(1, 2))
  .map(([client, number]) => `${client}/${number}/${2 * QUANTUM_MS}/1/;${QUANTUM_MS}`);
const token = fc.constantFrom("@", "@", "@", "1600000000000000");
const small = fc.constantFrom(1, 2, 3);
const leaseMs = fc.constantFrom(QUANTUM_MS, 2 * QUANTUM_MS);

/** Possible values of each argument, by its name. */
const ARGS: Readonly<Record<string, fc.Arbitrary<string | number>>> = {
  owner,
  from: owner,
  token,
  term: token,
  leaseMs,
  fenceMs: fc.constant(6 * QUANTUM_MS),
  keepMs: fc.constant(10 * QUANTUM_MS),
  block: fc.constant(1),
  enqueue: fc.constantFrom(0, 1, 1),
  again: fc.constantFrom(0, 1),
  freed: fc.constantFrom(0, 1),
  entered: fc.constantFrom(0, 1),
  request: small,
  number: small,
  most: small,
  count: small,
  by: small,
  parties: fc.constantFrom(2, 2, 2, 3),
  why: fc.constantFrom(2, 3, 4),
  id: fc.constantFrom(":a", ":b", "/1", "/2"),
  since: fc.constantFrom(0, "@"),
  value: fc.constantFrom("", "two words\n\u0000", "🔐"),
  inbox: fc.constant(INBOX),
  channel: fc.constant(CHANNEL),
};

interface Step {
  /** Undefined for a step that deletes a key. */
  readonly script: Script | undefined;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

function stepsOf(kind: string): fc.Arbitrary<Step> {
  const keys = KINDS[kind] as Readonly<Record<string, string>>;
  const own = Object.values(scripts).filter(({ name }) => name.startsWith(`${kind}/`));
  const calls = [...own, ...own, ...(ALSO[kind] ?? []), ...(ALSO[kind] ?? [])].map((script: Script) =>
    fc
      .tuple(...script.args.map((name) => ARGS[name] ?? fc.constant(`no ${name}`)))
      .map((args) => ({ script, keys: script.keys.map((name) => keys[name] as string), args })),
  );
  const deletion = fc.constantFrom(...Object.values(keys)).map((key) => ({ script: undefined, keys: [key], args: [] }));
  return fc.oneof(...calls, deletion);
}

let sides: [Side, Side];
beforeAll(async () => {
  const channels = [`${INBOX}A`, `${INBOX}B`, CHANNEL];
  sides = [await embeddedSide(channels), await realSide(channels)];
});
afterAll(async () => {
  await Promise.all((sides ?? []).map((side) => side.stop()));
});

/** Runs a program on one side and returns its visible effects in order. */
async function play(side: Side, kind: string, program: readonly Step[]): Promise<unknown> {
  await side.clear();
  const seen: unknown[] = [];
  for (const { script, keys, args } of program) {
    const words = await Promise.all(args.map(async (word) => (word === "@" ? last(side, kind) : word)));
    const reply = await side.eval(script?.source ?? "return redis.call('DEL', KEYS[1])", keys, words);
    seen.push({ call: script?.name ?? "delete", reply }, await side.messages());
    for (const { key, leftMs } of await side.dump()) expect(leftMs, key).toBeGreaterThan(0);
  }
  return normalise([...seen, await side.dump()]);
}

/** The last token or generation, as a client would know it. */
async function last(side: Side, kind: string): Promise<number> {
  const { fence, latch } = KINDS[kind] ?? {};
  const source = "return redis.call(ARGV[1], KEYS[1], ARGV[2])";
  const value =
    fence === undefined
      ? await side.eval(source, [latch ?? ""], ["HGET", "generation"])
      : await side.eval("return redis.call('GET', KEYS[1])", [fence], []);
  return Number(value ?? 1);
}

test.each(Object.keys(KINDS))(
  "random programs of %s scripts have the same effects on both servers",
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(fc.array(stepsOf(kind), { minLength: 2, maxLength: 25, size: "max" }), async (program) => {
        const [ours, theirs] = await Promise.allSettled(sides.map((side) => play(side, kind, program)));
        expect(ours).toEqual(theirs);
        expect(ours).toMatchObject({ status: "fulfilled" });
      }),
      { numRuns: Number(env.HOLDFAST_DIFFERENTIAL_RUNS ?? 60) },
    );
  },
  60_000,
);

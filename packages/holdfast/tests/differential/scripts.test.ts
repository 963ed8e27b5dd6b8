/**
 * Random programs of script calls give the same replies on the embedded server as on Redis and leave the same state.
 *
 * Programs never sleep: a key that "expires" is deleted. Times are rounded, and tokens dated by the clock are replaced
 * with their ranks in the program, so that order and equality are compared instead of the clocks.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import {
  clientRecordAnnounce,
  clientRecordRead,
  mutexAcquire,
  mutexAdopt,
  mutexExtend,
  mutexForceRelease,
  mutexInspect,
  mutexLeave,
  mutexRelease,
} from "../../src/generated/scripts.js";
import { embeddedSide, normalise, QUANTUM_MS, realSide, type Side } from "./two-servers.js";

const INBOX = "hf:in:";
const KEYS: Readonly<Record<string, string>> = {
  lock: "hf:mutex:{a b🔐}",
  fence: "hf:mutex:{a b🔐}:fence",
  queue: "hf:mutex:{a b🔐}:queue",
  handed: "hf:mutex:{a b🔐}:handed",
  pause: "hf:mutex:{a b🔐}:pause",
  client: "hf:client:A",
};
const PAST = 1_600_000_000_000_000;
const AHEAD = 4_000_000_000_000_000;

const SCRIPTS: Readonly<Record<string, Script>> = Object.fromEntries(
  [
    mutexAcquire,
    mutexRelease,
    mutexExtend,
    mutexLeave,
    mutexAdopt,
    mutexForceRelease,
    mutexInspect,
    clientRecordAnnounce,
    clientRecordRead,
  ].map((script) => [script.name, script]),
);

/** One step: the name of a script, or Lua code that changes a key. */
interface Step {
  readonly call: string;
  readonly args: Readonly<Record<string, string | number>>;
}

const leaseMs = fc.constantFrom(1, 2, 5).map((times) => times * QUANTUM_MS);
/** Clients A and B are subscribed, and C has crashed. Some values are not claims. */
const owner = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(
        fc.constantFrom("A", "B", "C"),
        fc.constantFrom(1, 2),
        fc.constantFrom(1, 3),
        fc.constantFrom("", "/l%20x", `/;${QUANTUM_MS}`, `/l%20x;${QUANTUM_MS}`),
      )
      .map(([client, number, block, label]) => `${client}/${number}/${2 * QUANTUM_MS}/${block}${label}`),
  },
  { weight: 1, arbitrary: fc.constantFrom("foreign", "x/y", "é\0", "A/1") },
);
/** `@0` is the last token, `@-1` the one before, and so on. Tokens are read on each side when the step runs. */
const token = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("@0") },
  { weight: 2, arbitrary: fc.constantFrom("@-1", "@1", "@-2") },
  { weight: 1, arbitrary: fc.constantFrom(String(PAST), String(AHEAD)) },
);

function step(script: Script, args: Readonly<Record<string, fc.Arbitrary<string | number>>>): fc.Arbitrary<Step> {
  return fc
    .record(args)
    .map((chosen) => ({ call: script.name, args: { inbox: INBOX, note: "", fenceMs: 8 * QUANTUM_MS, ...chosen } }));
}

function happens(source: string): Step {
  return { call: source, args: {} };
}

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: step(mutexAcquire, {
      owner,
      leaseMs,
      block: fc.constantFrom(1, 3),
      enqueue: fc.constantFrom(0, 1, 1, 2),
    }),
  },
  { weight: 5, arbitrary: step(mutexRelease, { owner, token, freed: fc.constantFrom(0, 0, 1) }) },
  { weight: 3, arbitrary: step(mutexExtend, { owner, token, leaseMs }) },
  { weight: 3, arbitrary: step(mutexLeave, { owner }) },
  { weight: 2, arbitrary: step(mutexAdopt, { from: owner, to: owner, token, leaseMs }) },
  {
    weight: 2,
    arbitrary: step(mutexForceRelease, {
      owner: fc.oneof(owner, fc.constant("")),
      token: fc.oneof(token, fc.constant("")),
    }),
  },
  {
    weight: 2,
    arbitrary: step(mutexInspect, { owner: fc.oneof(owner, fc.constant("")), most: fc.constantFrom(1, 3, 100) }),
  },
  {
    weight: 1,
    arbitrary: step(clientRecordAnnounce, {
      host: fc.constantFrom("h", "é\0\n"),
      pid: fc.constantFrom(1, 99_999),
      name: fc.constantFrom("", "n"),
      version: fc.constant("1.2.3"),
      protocol: fc.constant(1),
      keepMs: leaseMs,
      nonces: fc.constantFrom(" a ", " b ", " c b a "),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ call: clientRecordRead.name, args: {} }) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      happens("return redis.call('DEL', KEYS[1])"),
      happens("return redis.call('DEL', KEYS[1])"),
      happens("return redis.call('DEL', KEYS[2])"),
      happens("return redis.call('DEL', KEYS[3])"),
      happens("return redis.call('DEL', KEYS[4])"),
      happens("redis.call('SET', KEYS[4], 'A', 'PX', 60000) return 1"),
      happens(`redis.call('SET', KEYS[5], 'pause/1/2/1/r/by/why', 'PX', ${4 * QUANTUM_MS}) return 1`),
      happens("return redis.call('DEL', KEYS[5])"),
      happens(`redis.call('SET', KEYS[2], '${AHEAD}', 'PX', ${3 * QUANTUM_MS}) return 1`),
      happens(`redis.call('SET', KEYS[2], '${PAST}', 'PX', ${3 * QUANTUM_MS}) return 1`),
      happens("redis.call('SET', KEYS[1], 'foreign') return 1"),
      happens(`redis.call('SET', KEYS[1], 'foreign', 'PX', ${QUANTUM_MS}) return 1`),
      happens(`return redis.call('PEXPIRE', KEYS[1], ${4 * QUANTUM_MS})`),
    ),
  },
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
    const names = script === undefined ? ["lock", "fence", "queue", "pause"] : script.keys;
    const keys = names.map((name) => KEYS[name] as string);
    const words = await Promise.all((script?.args ?? []).map(async (name) => tokenOf(side, args[name])));
    // A Lua error must occur on both sides, but its text depends on the interpreter.
    const reply = await side
      .eval(script?.source ?? call, keys, words)
      .catch((error: unknown) => ({ failed: error instanceof Error }));
    seen.push({ call, reply: call === mutexAcquire.name && Array.isArray(reply) ? withoutClock(reply) : reply });
  }
  return normalise([...seen, { messages: await side.messages(), left: await side.dump() }]);
}

/** Drops the clock of a refusal: TIME advances within a script on Redis 7.0 only, so its rank is not fixed. */
function withoutClock([code, restMs, nowUs]: readonly unknown[]): unknown[] {
  expect(Math.abs(Number(nowUs) / 1_000 - Date.now())).toBeLessThan(QUANTUM_MS);
  return [code, restMs];
}

async function tokenOf(side: Side, value: string | number | undefined): Promise<string | number> {
  if (typeof value !== "string" || !value.startsWith("@")) return value ?? "";
  const last = await side.eval("return redis.call('GET', KEYS[1])", [KEYS.fence as string], []);
  return Number(last ?? PAST) + Number(value.slice(1));
}

test("random programs of script calls give the same replies, keys, messages and TTLs on both servers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 2, maxLength: 25 }), async (program) => {
      const [ours, theirs] = await Promise.all(sides.map((side) => play(side, program)));
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 400 },
  );
});

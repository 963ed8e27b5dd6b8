import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnClaim, parseOwner } from "../../src/core/protocol.js";
import { systemRuntime } from "../../src/core/runtime.js";

/** Any valid label. */
const label = fc.string({ unit: "binary", maxLength: 80 }).filter((text) => !/\p{Surrogate}/u.test(text));
const whole = fc.integer({ min: 1, max: 1e9 });

const handOff = fc.option(whole, { nil: undefined });

test("an owner id contains its client, amount and label, whatever the label is", () => {
  fc.assert(
    fc.property(label, whole, whole, handOff, (text, number, leaseMs, handOffMs) => {
      const clientId = systemRuntime.newClientId();
      const { owner } = new OwnClaim({ clientId, number, leaseMs, amount: 3, label: text, handOffMs });
      expect(parseOwner(owner)).toEqual({ clientId, amount: 3, label: text === "" ? undefined : text });
    }),
    { numRuns: 1_000 },
  );
});

test("an owner id is plain ASCII without spaces, safe in logs, messages and patterns", () => {
  fc.assert(
    fc.property(label, handOff, (text, handOffMs) => {
      const { owner } = new OwnClaim({
        clientId: "client-id_0",
        number: 1,
        leaseMs: 100,
        amount: 1,
        label: text,
        handOffMs,
      });
      expect(owner).toMatch(/^client-id_0\/1\/100\/1(\/[\w%.!~*'()-]*(;\d+)?)?$/);
    }),
  );
});

test("the hand-off script parses the same fields", () => {
  // The patterns of lua/hand-off.lua: ^([^/]+)/(%d+)/(%d+)/(%d+) and ;(%d+)$
  fc.assert(
    fc.property(label, whole, whole, whole, handOff, (text, number, leaseMs, amount, handOffMs) => {
      const { owner } = new OwnClaim({ clientId: "client-id_0", number, leaseMs, amount, label: text, handOffMs });
      const read = /^([^/]+)\/(\d+)\/(\d+)\/(\d+)/.exec(owner)?.slice(1);
      expect(read).toEqual(["client-id_0", `${number}`, `${leaseMs}`, `${amount}`]);
      expect(/;(\d+)$/.exec(owner)?.[1]).toBe(handOffMs?.toString());
    }),
  );
});

test("clients of protocol 0 parse client and amount, and show the rest as part of the label", () => {
  const { owner } = new OwnClaim({
    clientId: "c",
    number: 1,
    leaseMs: 9_000,
    amount: 2,
    label: "cron",
    handOffMs: 3_000,
  });
  // This is how protocol 0 parsed an owner id.
  const [, clientId, amount, text] = /^([\w-]+)\/\d+\/\d+\/(\d+)(?:\/([^/]*))?$/.exec(owner) ?? [];
  expect([clientId, amount, text]).toEqual(["c", "2", "cron;3000"]);
});

test.each(["", "foreign", "a/b", "a/1/2", "a/1/2/3/x/y", "a/1/2/x", "a b/1/2/3", "a/1/2/3\n", "/1/2/3"])(
  "text from another kind of client is not an owner id: %j",
  (text) => {
    expect(parseOwner(text)).toBeUndefined();
  },
);

test("a label that is not valid percent-encoding is shown unchanged", () => {
  expect(parseOwner("a/1/2/3/%E0%A4%A")?.label).toBe("%E0%A4%A");
});

test("client ids are unique and need no escaping", () => {
  const ids = new Set(Array.from({ length: 10_000 }, () => systemRuntime.newClientId()));
  expect(ids.size).toBe(10_000);
  for (const id of ids) expect(id).toMatch(/^[\w-]{16}$/);
});

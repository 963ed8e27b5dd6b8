/** The messages of the errors of `once`. */
import { expect, test } from "vitest";
import { OnceBlockedError, OnceMismatchError, OnceRunningError, OnceUnavailableError } from "../src/index.js";

const HOLDER = {
  owner: "client/1/30000/1",
  label: undefined,
  host: "shop-3",
  pid: 7,
  clientName: undefined,
  token: 1e21,
  leaseLeftMs: 100,
};

test.each([1e18, Number.NaN])("a stored time of %s ms, which is no date, appears in the message as it is", (atMs) => {
  const holder = { ...HOLDER, sinceAtMs: atMs };
  const errors = [
    new OnceRunningError("order:42", { waitMs: 0, holder }),
    new OnceMismatchError("order:42", { state: "running", sinceMs: atMs }),
    new OnceBlockedError("order:42", { attempt: 1, blockedMs: atMs, reason: "unknown" }),
    new OnceUnavailableError("order:42", { firstMs: atMs }),
  ];
  for (const { message } of errors) expect(message).toContain(String(atMs));
});

test("a time in a message has the ISO 8601 format", () => {
  const error = new OnceUnavailableError("order:42", { firstMs: 1_763_711_220_000 });
  expect(error.message).toContain("first attempt at 2025-11-21T07:47:00.000Z");
});

/** `resumesInMs` of a QuorumError: when a majority may be able to grant again. */
import { expect, test } from "vitest";
import { QuorumError, type ServerAnswer, StoreError } from "../../src/core/errors.js";

/** A number is a server whose grace period ends after that many ms. null is a server that does not reply. */
function resumesInMs(...servers: readonly (number | "granted" | "held" | null)[]): number | undefined {
  const answers = servers.map((one, server): ServerAnswer => {
    if (typeof one === "string") return { server, answer: one, leaseLeftMs: undefined, error: undefined };
    const failure = { mayHaveRun: one === null, transient: true, cause: "away", resumesInMs: one ?? undefined };
    const error = new StoreError("ledger", failure);
    return { server, answer: one === null ? "none" : "error", leaseLeftMs: undefined, error };
  });
  return new QuorumError("ledger", { answers, mayHaveRun: true, transient: true }).resumesInMs;
}

test("resumesInMs is the time until enough servers in grace can grant", () => {
  expect(resumesInMs(900, 300, "granted")).toBe(300);
  expect(resumesInMs(900, 300, 600)).toBe(600);
  expect(resumesInMs(900, 300, null)).toBe(300);
  expect(resumesInMs(900, 300, 600, "granted", null)).toBe(300);
  expect(resumesInMs(900, 300, 600, 100, null)).toBe(300);
});

test("resumesInMs is undefined if the other servers are a majority or no server is in grace", () => {
  expect(resumesInMs(900, null, null)).toBeUndefined();
  expect(resumesInMs(900, "held", "granted")).toBeUndefined();
  expect(resumesInMs(null, null, null)).toBeUndefined();
});

/** Conversion of acquire errors to refusals. */

import { AcquireTimeoutError, ClosedError, EvictionError, LeaseLostError, PausedError, StoreError } from "holdfast";
import { expect, test } from "vitest";
import { refusalOf } from "../src/refusal.js";

const holder = {
  owner: "c/1/nightly report",
  label: "nightly report",
  host: "a",
  pid: 7,
  clientName: "reports",
  token: 12,
  sinceAtMs: 1_700_000_000_000,
  leaseLeftMs: 900,
};

test("a timeout names the holder, the time of its grant and its label", () => {
  const error = new AcquireTimeoutError("job", { waitMs: 0, holder });
  expect(refusalOf(error)).toEqual({
    outcome: "refused",
    reason: "held",
    holder,
    sinceAtMs: holder.sinceAtMs,
    leaseLeftMs: 900,
    label: "nightly report",
    error,
  });
});

test("a timeout without a known holder has no holder details", () => {
  const error = new AcquireTimeoutError("job", { waitMs: 0 });
  expect(refusalOf(error)).toEqual({ outcome: "refused", reason: "held", error });
});

test("a pause is reported, whether the caller waited or not", () => {
  const pause = { by: "ops", label: "maintenance", sinceAtMs: 5, untilAtMs: undefined, owner: "p" };
  const met = new PausedError("job", pause);
  const told = { outcome: "refused", reason: "paused", label: "maintenance", sinceAtMs: 5 };
  expect(refusalOf(met)).toEqual({ ...told, error: met });
  const waited = new AcquireTimeoutError("job", { waitMs: 10, pause });
  expect(refusalOf(waited)).toEqual({ ...told, error: waited });
});

test("a server in its grace period reports the remaining time", () => {
  const error = new StoreError("job", { mayHaveRun: false, transient: true, cause: "quiet", resumesInMs: 1_200 });
  expect(refusalOf(error)).toEqual({ outcome: "refused", reason: "grace", leaseLeftMs: 1_200, error });
});

test("a server that does not reply or may evict keys is unavailable", () => {
  const lost = new StoreError("job", { mayHaveRun: true, transient: true, cause: "gone" });
  expect(refusalOf(lost)?.reason).toBe("unavailable");
  const evicts = new EvictionError("job", { policy: "allkeys-lru", maxmemoryBytes: 1 });
  expect(refusalOf(evicts)?.reason).toBe("unavailable");
});

test("a lost lease, a closed Holdfast and the caller's own error are not refusals", () => {
  const lost = new LeaseLostError("job", { reason: "expired", token: 1, owner: "c/1" });
  for (const error of [lost, new ClosedError("job"), new TypeError("x"), undefined])
    expect(refusalOf(error)).toBeUndefined();
});

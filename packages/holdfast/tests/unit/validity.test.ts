import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { earliestGrant, later, msUntil, now, validUntil } from "../../src/core/time.js";
import { ManualRuntime } from "./manual-runtime.js";

const leaseMs = fc.integer({ min: 100, max: 31_536_000_000 });
const ms = fc.double({ min: 0, max: 100_000_000, noNaN: true });

describe("validity", () => {
  test("is the lease minus 1 % and 2 ms on both clocks", () => {
    const moment = { monotonicMs: 1_000, wallMs: 2_000 };
    expect(validUntil(moment, 30_000)).toEqual({ monotonicMs: 30_698, wallMs: 31_698 });
    expect(validUntil(moment, 100)).toEqual({ monotonicMs: 1_097, wallMs: 2_097 });
    fc.assert(
      fc.property(leaseMs, ms, (length, at) => {
        const until = validUntil({ monotonicMs: at, wallMs: at }, length);
        expect(until.monotonicMs - at).toBeCloseTo(length * 0.99 - 2, 3);
        expect(until.wallMs).toBe(until.monotonicMs);
        expect(until.monotonicMs - at).toBeGreaterThan(0);
      }),
    );
  });

  test("ends when the first of the two clocks says so, and is never negative", () => {
    fc.assert(
      fc.property(
        leaseMs,
        fc.integer({ min: 0, max: 1e9 }),
        fc.integer({ min: -1e9, max: 1e9 }),
        (length, passed, step) => {
          const runtime = new ManualRuntime();
          const until = validUntil(now(runtime), length);
          runtime.block(passed);
          runtime.stepWall(step);
          const left = msUntil(until, runtime);
          expect(left).toBeCloseTo(Math.max(0, length * 0.99 - 2 - passed - Math.max(0, step)), 2);
        },
      ),
    );
  });

  test("is taken from whichever of two leases ends later by the current clocks", () => {
    const runtime = new ManualRuntime();
    const first = validUntil(now(runtime), 30_000);
    runtime.stepWall(-3_600_000);
    runtime.block(10_000);
    const second = validUntil(now(runtime), 30_000);
    const at = now(runtime);
    expect(later(first, second, at)).toBe(second);
    expect(later(second, first, at)).toBe(second);
    expect(later(second, validUntil(at, 100), at)).toBe(second);
  });

  test("ends before the server's lease if the clock rates differ by less than 1 %", () => {
    fc.assert(
      fc.property(leaseMs, fc.double({ min: 0.99, max: 1.01, noNaN: true }), ms, (length, rate, onTheWay) => {
        // The server sets the lease `onTheWay` ms after the request was sent. It ends when the server's clock is
        // `length` ms further.
        const endsAfterMs = onTheWay + length * rate;
        expect(validUntil({ monotonicMs: 0, wallMs: 0 }, length).monotonicMs).toBeLessThan(endsAfterMs);
      }),
    );
  });
});

describe("the earliest moment of a grant", () => {
  test("is never after the true one for any clock offset, rates within 1 % and any delay", () => {
    fc.assert(
      fc.property(
        fc.record({
          offsetUs: fc.integer({ min: -1e15, max: 1e15 }),
          rate: fc.double({ min: 0.99, max: 1.01, noNaN: true }),
          toServer: ms,
          untilGrant: ms,
          toClient: ms,
        }),
        ({ offsetUs, rate, toServer, untilGrant, toClient }) => {
          const sentAtMs = 5_000;
          const sampledAtMs = sentAtMs + toServer;
          const grantedAtMs = sampledAtMs + untilGrant;
          const receivedAtMs = grantedAtMs + toClient;
          // `rate` is the client time per unit of server time. The server's clock counts whole µs.
          const serverUs = (atMs: number): number => Math.floor((atMs * 1_000) / rate) + offsetUs + 2e15;
          const both = (atMs: number) => ({ monotonicMs: atMs, wallMs: atMs });
          const earliest = earliestGrant(
            { sentAt: both(sentAtMs), serverUs: serverUs(sampledAtMs) },
            serverUs(grantedAtMs),
            both(receivedAtMs),
          );
          // Rounding to whole µs may add 1 µs, and doubles of this size have fewer digits.
          expect(earliest.monotonicMs).toBeLessThanOrEqual(grantedAtMs + 0.002);
          expect(earliest.monotonicMs).toBeGreaterThanOrEqual(sentAtMs);
          expect(earliest.wallMs).toBe(earliest.monotonicMs);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("is never after the message or before the sample request, whatever the server's clock says", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), ms, (sampleUs, grantUs, passed) => {
        const sentAt = { monotonicMs: 100, wallMs: 200 };
        const receivedAt = { monotonicMs: 100 + passed, wallMs: 200 + passed };
        const earliest = earliestGrant({ sentAt, serverUs: sampleUs }, grantUs, receivedAt);
        expect(earliest.monotonicMs).toBeLessThanOrEqual(receivedAt.monotonicMs);
        expect(earliest.monotonicMs).toBeGreaterThanOrEqual(100);
      }),
    );
  });
});

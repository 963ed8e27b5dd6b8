/** When a client writes its record, on a manual clock. */
import { beforeEach, describe, expect, test } from "vitest";
import { type ClientRecords, OwnClientRecord } from "../../src/core/session.js";
import { ManualRuntime } from "./manual-runtime.js";
import { lost } from "./scripted-lock.js";

let runtime: ManualRuntime;
let startMs: number;
let presence: OwnClientRecord;
let isInUse: boolean;
/** When the record was written, and how long it lives. */
let written: [atMs: number, keepMs: number][];
let write: () => Promise<void>;

beforeEach(() => {
  runtime = new ManualRuntime();
  startMs = runtime.monotonicMs();
  [isInUse, written, write] = [true, [], () => Promise.resolve()];
  const records: ClientRecords = {
    announce: (keepMs) => {
      written.push([runtime.monotonicMs() - startMs, keepMs]);
      return write();
    },
    read: () => Promise.resolve(undefined),
  };
  presence = new OwnClientRecord(records, runtime, () => isInUse);
});

describe("the client record", () => {
  test("is written with the first claim and outlives its lease by a minute", () => {
    presence.touch(30_000);
    expect(written).toEqual([[0, 90_000]]);
  });

  test("is not rewritten while it is fresh, unless a lease is longer", () => {
    presence.touch(30_000);
    for (const leaseMs of [30_000, 100, 29_999]) presence.touch(leaseMs);
    expect(written).toHaveLength(1);
  });

  test("is rewritten immediately for a longer lease and keeps that lifetime", async () => {
    presence.touch(1_000);
    await runtime.advance(5_000);
    presence.touch(600_000);
    presence.touch(1_000);
    await runtime.advance(20_000);
    expect(written).toEqual([
      [0, 61_000],
      [5_000, 660_000],
      [25_000, 660_000],
    ]);
  });

  test("is rewritten every 20 s while the client is in use", async () => {
    presence.touch(30_000);
    await runtime.advance(60_000);
    expect(written.map(([atMs]) => atMs)).toEqual([0, 20_000, 40_000, 60_000]);
  });

  test("expires while the client is idle, and is rewritten with its next claim", async () => {
    presence.touch(30_000);
    isInUse = false;
    await runtime.advance(100_000);
    expect([written.length, runtime.running()]).toEqual([1, 0]);
    presence.touch(1_000);
    expect(written.at(-1)).toEqual([100_000, 90_000]);
    isInUse = true;
    await runtime.advance(20_000);
    expect(written).toHaveLength(3);
  });

  test("is written again after a failure, without an error", async () => {
    write = () => Promise.reject(lost());
    presence.touch(30_000);
    await runtime.advance(20_000);
    expect(written).toHaveLength(2);
  });

  test("does not keep the process alive", () => {
    presence.touch(30_000);
    expect([runtime.running(true), runtime.running(false)]).toEqual([0, 1]);
  });
});

describe("a server that may have lost the client record", () => {
  test("gets it again immediately, and 20 s later", async () => {
    presence.touch(30_000);
    await runtime.advance(15_000);
    presence.announce();
    await runtime.advance(20_000);
    expect(written.map(([atMs]) => atMs)).toEqual([0, 15_000, 35_000]);
  });

  test("gets no record from a client that was never used", async () => {
    presence.announce();
    await runtime.advance(60_000);
    expect([written, runtime.started]).toEqual([[], 0]);
  });
});

test("after close no client record is written", async () => {
  presence.touch(30_000);
  presence.close();
  expect(runtime.running()).toBe(0);
  presence.touch(60_000);
  presence.announce();
  await runtime.advance(60_000);
  expect(written).toHaveLength(1);
});

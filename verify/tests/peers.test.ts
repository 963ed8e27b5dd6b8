/** Without faults, every peer does what the fault runs require. So whatever fails in a fault run is due to the fault. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import type { Letter } from "../src/faults/cell.js";
import type { Connection, Held, Refused, Renewal, Request, Subject } from "../src/faults/subject.js";
import { PEERS, peerCells, peerKey } from "../src/faults/subjects/peers.js";
import { monotonicMs } from "../src/faults/topology/monotonic.js";
import type { Kind } from "../src/history/records.js";

const LEASE_MS = 5_000;
const KINDS: Partial<Record<Letter, Kind>> = {
  m: "mutex",
  a: "mutex",
  t: "mutex",
  s: "semaphore",
  k: "multi-lock",
};
/** Peers whose release resolves without a value in any case. */
const SILENT: ReadonlySet<string> = new Set(["redis-semaphore", "simple-redis-mutex"]);

let server: RedisServer;
let names = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe.concurrent.each(Object.keys(PEERS))("%s", (name) => {
  let subject: Subject;
  let connection: Connection;

  beforeAll(async () => {
    subject = (await (PEERS[name] as (typeof PEERS)[string])()).subject;
    connection = await subject.connect({
      port: server.port,
      reach: { by: "port" },
      grace: "off",
      releases: "awaited",
      commandTimeoutMs: 2_000,
      wallOffsetMs: () => 0,
      mutations: [],
    });
  });
  afterAll(() => connection.close());

  function asked(changes: Partial<Request> = {}): Request {
    names += 1;
    return {
      lockName: `lock-${names}`,
      otherNames: [`other-${names}`],
      leaseMs: LEASE_MS,
      waitMs: 0,
      renew: false,
      permits: 1,
      limit: 1,
      owner: `hint-${names}`,
      ...changes,
    };
  }

  function keyOf({ lockName }: Request): string {
    return peerKey(name, "m", lockName);
  }

  async function granted(request: Request, kind: Kind): Promise<Held> {
    return heldOf(await connection.acquire(request, kind));
  }

  it("reports its version and settings", () => {
    expect(subject.name).toBe(name);
    expect(subject.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(subject.settings).not.toBe("");
    expect(subject.letters).toContain("m");
  });

  it("has one holder at a time, for each kind, and the next one after a release", async () => {
    for (const letter of subject.letters) {
      const kind = KINDS[letter] as Kind;
      const request = asked({ renew: letter === "a" });
      const first = await granted(request, kind);
      expect(first.isHeld()).toBe(true);
      expect(await connection.acquire(request, kind)).toMatchObject({ outcome: "no", refusal: "busy" });
      expect(await first.release()).toBeUndefined();
      expect(first.isHeld()).toBe(false);
      const second = await granted(request, kind);
      expect(second.owner).not.toBe(first.owner);
      await second.release();
    }
  });

  it("reports the same owner as the server", async () => {
    const request = asked();
    const held = await granted(request, "mutex");
    expect(await server.command("GET", keyOf(request))).toBe(held.owner);
    await held.release();
  });

  it("extends its lease, and reports no longer validity than the server grants", async () => {
    const request = asked();
    const held = await granted(request, "mutex");
    const key = keyOf(request);
    await server.command("PEXPIRE", key, LEASE_MS / 2);
    expect(await held.extend(LEASE_MS)).toBeUndefined();
    const untilMs = held.validUntilMs();
    const leftMs = Number(await server.command("PTTL", key));
    expect(leftMs).toBeGreaterThan(LEASE_MS / 2);
    // One side is in whole ms of the server's clock, the other in whole ms of the wall clock.
    if (untilMs !== null) expect(untilMs).toBeLessThanOrEqual(monotonicMs() + leftMs + 2);
    await held.release();
  });

  it("waits for a release, and gives up when its time is up", async () => {
    const request = asked();
    const held = await granted(request, "mutex");
    expect(await connection.acquire({ ...request, waitMs: 20 }, "mutex")).toMatchObject({ outcome: "no" });
    const { waitMs: _, ...forEver } = request;
    const waiting = connection.acquire(forEver, "mutex");
    await held.release();
    const next = heldOf(await waiting);
    expect(await next.release()).toBeUndefined();
  });

  it("does not touch the lock of another holder, and reports that if its API can", async () => {
    const request = asked();
    const held = await granted(request, "mutex");
    const key = keyOf(request);
    await server.command("SET", key, "another");
    const answer = await held.release();
    if (!SILENT.has(name)) expect(answer).toMatchObject({ outcome: "no", refusal: "not-owner" });
    expect(await server.command("GET", key)).toBe("another");
  });

  it("supports what its letters stand for", async () => {
    const expected: Partial<Record<Letter, () => Promise<void>>> = { a: renews, k: takesAll, s: counts, t: numbers };
    for (const letter of subject.letters) await expected[letter]?.();
  });

  async function renews(): Promise<void> {
    const held = await granted(asked({ leaseMs: 3_000, renew: true }), "mutex");
    const renewal = await new Promise<Renewal>((resolve) => held.onRenewal?.(resolve));
    expect(renewal.leaseMs).toBe(3_000);
    // The first call may send a hash that the server does not know yet.
    expect([undefined, "not-sent"]).toContain((await renewal.ended)?.refusal);
    expect(held.isHeld()).toBe(true);
    expect(await held.release()).toBeUndefined();
  }

  async function takesAll(): Promise<void> {
    const request = asked();
    const held = await granted(request, "multi-lock");
    expect(held.parts).toMatchObject([{ lockName: request.lockName }, { lockName: request.otherNames?.[0] }]);
    const other = asked({ lockName: request.otherNames?.[0] ?? "" });
    expect(await connection.acquire(other, "mutex")).toMatchObject({ refusal: "busy" });
    await server.command("DEL", other.lockName);
    const end = await held.release();
    // Not all members were released, and each member reports that.
    expect(end).toMatchObject({ outcome: "no", refusal: "not-owner" });
    for (const { released } of held.parts ?? []) expect(await released?.()).toBe(end);
  }

  async function counts(): Promise<void> {
    const request = asked({ limit: 3 });
    const held = [await granted({ ...request, permits: 2 }, "semaphore"), await granted(request, "semaphore")];
    expect(await connection.acquire(request, "semaphore")).toMatchObject({ refusal: "busy" });
    for (const permits of held) await permits.release();
  }

  async function numbers(): Promise<void> {
    const request = asked();
    const first = await granted(request, "mutex");
    await first.release();
    const second = await granted(request, "mutex");
    expect(second.token).toBeGreaterThan(first.token ?? Number.NaN);
    await second.release();
  }

  it("accepts only cells of its own letters, each of them once", () => {
    const cells = peerCells(subject);
    expect(new Set(cells.map(({ letter }) => letter))).toEqual(new Set(subject.letters));
    expect(new Set(cells.map(({ id }) => id)).size).toBe(cells.length);
    for (const { id, row, column, letter } of cells) expect(id).toBe(`${row}/${column}/${letter}`);
  });
});

function heldOf(answer: Held | Refused): Held {
  if ("outcome" in answer) throw new Error(`it was refused: ${answer.message}`);
  return answer;
}

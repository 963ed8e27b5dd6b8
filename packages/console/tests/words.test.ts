import { describe, expect, it } from "vitest";
import type { Viewer } from "../src/access.js";
import { type HistoryRow, type LockRow, SAMPLE_SPAN_MS } from "../src/api.js";
import { Attempts } from "../src/attempts.js";
import { deadlockView } from "../src/deadlocks.js";
import { Terms } from "../src/elections.js";
import { explain } from "../src/explain.js";
import { readFilter } from "../src/filter.js";
import { csvOf } from "../src/history.js";
import { lockAnswer } from "../src/lock-answer.js";
import { environmentOf } from "../src/options.js";
import { Contention, RoundTrips } from "../src/samples.js";
import type { LockDetail } from "../src/snapshot.js";
import { holdersOf, publicOwner, rowOf } from "../src/views.js";
import { entry, holder } from "./entries.js";

const NOW_MS = 1_800_000_000_000;
const context = { redact: new Set<"label" | "value">(), nowMs: NOW_MS };
const row = (more: Parameters<typeof entry>[0] = {}): LockRow => rowOf(entry(more), context, [], undefined);

describe("the filter box", () => {
  const busy = row({
    name: "order:42",
    holders: [holder({ host: "ci-7", pid: 42, clientName: "api", sinceAtMs: NOW_MS - 360_000 })],
    waiterCount: 2,
  });
  const fits = (text: string): boolean => readFilter(text)(busy, NOW_MS);

  it("finds locks by name, kind, holder, duration and waiters; all conditions must match", () => {
    for (const text of [
      "",
      "order",
      "ORDER:4",
      "name:42",
      "kind:mut",
      "holder:ci-7",
      "holder:ci-7/42",
      "holder:API",
      "waiting",
      "over:5m",
      "api",
      "state:held",
      "name:order waiting over:300s",
    ]) {
      expect([text, fits(text)]).toEqual([text, true]);
    }
    for (const text of [
      "invoice",
      "kind:sem",
      "holder:ci-8",
      "over:7m",
      "paused",
      "state:free",
      "name:order paused",
      "label:x",
    ]) {
      expect([text, fits(text)]).toEqual([text, false]);
    }
  });

  it("finds holders that are gone or late, and locks that it sees only partly", () => {
    const words = ["gone", "late", "partial"];
    const fitting = (more: Parameters<typeof entry>[0]): readonly string[] =>
      words.filter((word) => readFilter(word)(row(more), NOW_MS));
    expect(fitting({ holders: [holder({ leaseLeftMs: 15_000 })] })).toEqual([]);
    expect(fitting({ holders: [holder({ leaseLeftMs: 14_999 })] })).toEqual(["late"]);
    expect(fitting({ holders: [holder(), holder({ goneSinceAtMs: NOW_MS - 80_000 })] })).toEqual(["gone"]);
    expect(fitting({ kind: "redlock", needsTopology: "redlock", holders: [holder()] })).toEqual(["partial"]);
  });

  it("treats an invalid condition as a plain word", () => {
    expect(fits("size:5")).toBe(false);
    expect(fits("order:42")).toBe(true);
    expect(fits("over:")).toBe(false);
    expect(fits("over:soon")).toBe(false);
  });
});

describe("the reason why the next waiter still waits", () => {
  const said = (
    more: Parameters<typeof entry>[0],
    isDead: boolean | null = null,
    grace = false,
    serverCount = 1,
  ): [string, string] => {
    const one = entry(more);
    const facts = {
      grace: grace ? { sinceAtMs: null, untilAtMs: NOW_MS + 9_000, cause: "It was restarted." } : null,
      pause:
        one.pause === undefined
          ? null
          : { by: one.pause.by, reason: one.pause.label, sinceAtMs: 0, untilAtMs: null, id: "1" },
      holders: holdersOf(one.holders, context),
      serverCount,
      isDead: () => isDead,
    };
    const { code, text } = explain(one, facts);
    return [code, text];
  };
  const held = { holders: [holder({ host: "ci-7", pid: 42, clientName: "api" })], waiterCount: 1 };

  it("is one for each state, and the most specific one first", () => {
    expect(said({})).toEqual(["free", expect.stringContaining("Free")]);
    expect(said({ waiterCount: 2 })[0]).toBe("hand-over");
    expect(said({ waiterCount: 2 }, null, true)).toEqual(["grace", expect.stringContaining("It was restarted.")]);
    expect(said({ ...held, waiterCount: 0 })[0]).toBe("no-waiters");
    expect(said(held)).toEqual(["held", expect.stringContaining("ci-7/42 (api)")]);
    expect(said(held, true)).toEqual(["dead-holder", expect.stringContaining("gone")]);
    expect(said({ ...held, pause: { by: "ana", label: "x", sinceAtMs: 0, untilAtMs: undefined, owner: "p" } })[0]).toBe(
      "paused",
    );
    expect(said({ ...held, kind: "semaphore", permits: { limit: 3, used: 4 } })).toEqual([
      "no-permits",
      expect.stringContaining("4 of 3"),
    ]);
    expect(said({ holders: [holder({ owner: "legacy", leaseLeftMs: Infinity })], waiterCount: 1 })).toEqual([
      "foreign",
      expect.stringContaining("never ends"),
    ]);
  });

  it("is the quiet time for every lock without a holder, unless it is a latch or a barrier", () => {
    expect(said({}, null, true)).toEqual([
      "grace",
      "Quiet time: no new locks are granted until it ends. It was restarted.",
    ]);
    // Of several servers, another one may be in its quiet time.
    expect(said({}, null, true, 3)).toEqual(["free", expect.stringContaining("unless its server is the one in")]);
    expect(said({ waiterCount: 1 }, null, true, 3)).toEqual([
      "grace",
      expect.stringMatching(/^A server is in its quiet/),
    ]);
    const latch = { kind: "count-down-latch", count: { left: 2, initial: 5 }, state: "counting" } as const;
    expect(said(latch, null, true)[0]).toBe("counting");
  });

  it("says what the waiters of a latch or a barrier wait for", () => {
    const latch = { kind: "count-down-latch", waiterCount: 3 } as const;
    expect(said({ ...latch, count: { left: 2, initial: 5 } })).toEqual([
      "counting",
      "2 of 5 counts left: waiters continue when the count reaches zero.",
    ]);
    expect(said({ kind: "count-down-latch" })).toEqual(["free", "The latch is open: callers do not wait."]);
    const barrier = (arrived: number, broken?: "timed-out") =>
      said({ kind: "barrier", waiterCount: arrived, barrier: { parties: 4, generation: 1, broken } });
    expect(barrier(3)).toEqual(["gathering", "3 of 4 parties have arrived: waiters continue when all have."]);
    expect(barrier(0)[0]).toBe("free");
    expect(barrier(0, "timed-out")).toEqual(["broken", expect.stringContaining("until it is reset")]);
    expect(said({ kind: "barrier" })).toEqual(["free", "No party has arrived."]);
  });

  it("counts all holders", () => {
    const others = [holder({ host: "ci-8", pid: 1 }), holder({ host: "ci-9", pid: 1 })];
    const several = { ...held, kind: "read-write-lock", holders: [...held.holders, ...others] } as const;
    expect(said({ ...several, waiterCount: 0 })[1]).toBe("Held by ci-7/42 (api) and 2 more; no waiters.");
    expect(said(several, false)[1]).toContain("Held by ci-7/42 (api), whose process is alive, and 2 more:");
    expect(said(several, true)[1]).toBe(
      "The holder ci-7/42 (api) and 2 more are gone: no sign of them for over a minute. " +
        "When the last lease ends, the next waiter gets the lock.",
    );
    expect(said(held, true)[1]).toBe(
      "The holder ci-7/42 (api) is gone: no sign of it for over a minute. " +
        "When its lease ends, the next waiter gets the lock.",
    );
  });

  it("names the key of the wrong type if it is known, and otherwise no key to delete", () => {
    const broken = (...keys: string[]) => said({ state: "broken", unreadable: { keys } })[1];
    expect(broken("hf:a")).toContain("redis-cli UNLINK hf:a");
    expect(broken("hf:a", "hf:b")).toMatch(/one of the keys hf:a, hf:b is .*UNLINK only the one that is wrong\.$/);
    expect(broken("hf:a", "hf:b")).not.toContain("UNLINK hf:");
  });

  it("contains the number of servers on which a Redlock is held", () => {
    const redlock = { ...held, kind: "redlock", waiterCount: 0 } as const;
    expect(said({ ...redlock, servers: { holding: 2, answered: 2, total: 3 } })[1]).toMatch(
      /held on 2 of 3 servers, a majority; 1 did not reply\. If either of these 2 servers fails, the lock is lost\.$/,
    );
    expect(said({ ...redlock, servers: { holding: 3, answered: 5, total: 5 } })[1]).toMatch(
      /held on 3 of 5 servers, a majority\. If one of these 3 servers fails, the lock is lost\.$/,
    );
    expect(said({ ...redlock, servers: { holding: 5, answered: 5, total: 5 } })[1]).toMatch(
      /held on 5 of 5 servers, a majority\.$/,
    );
  });

  it("does not say that the holder is alive if that is unknown", () => {
    expect(said(held)[1]).not.toContain("is alive");
    expect(said(held, false)[1]).toContain("is alive");
  });
});

describe("samples", () => {
  it("keep the maximum number of waiters of each interval, at most 30 intervals, and none before the first reading", () => {
    const contention = new Contention();
    const look = (span: number, waiters: number): void => {
      contention.begin(NOW_MS + span * SAMPLE_SPAN_MS);
      contention.record("x", waiters);
    };
    look(0, 0);
    expect(contention.of("x")).toEqual([]);
    look(1, 3);
    look(1, 7);
    look(1, 2);
    look(2, 0);
    look(3, 1);
    expect(contention.of("x")).toEqual([0, 7, 0, 1]);
    for (let span = 4; span < 60; span += 1) look(span, 1);
    expect(contention.of("x")).toEqual(Array.from({ length: 30 }, () => 1));
    for (let span = 60; span < 90; span += 1) look(span, 0);
    expect(contention.size).toBe(0);
    look(90, 2);
    look(200, 1);
    expect(contention.of("x")).toEqual([1]);
  });

  it("are limited in number, however many names there are", () => {
    const contention = new Contention();
    contention.begin(NOW_MS);
    for (let i = 0; i < 25_000; i += 1) contention.record(`lock ${i}`, 1);
    expect(contention.size).toBe(10_000);
    const trips = new RoundTrips();
    for (let i = 0; i < 1_000; i += 1) trips.record(i, 1);
    expect(trips.all()).toHaveLength(300);
    expect(trips.all().at(-1)?.atMs).toBe(999);
  });
});

describe("a row", () => {
  it("does not change while the lease runs down, and changes when it is renewed", () => {
    const first = rowOf(entry({ holders: [holder({ leaseLeftMs: 30_000 })] }), context, [], undefined);
    const later = { ...context, nowMs: NOW_MS + 1_013 };
    const same = rowOf(entry({ holders: [holder({ leaseLeftMs: 29_000 })] }), later, [], first);
    expect(JSON.stringify(same)).toBe(JSON.stringify(first));
    const renewed = rowOf(entry({ holders: [holder({ leaseLeftMs: 30_000 })] }), later, [], first);
    expect(renewed.expiresAtMs).toBe(NOW_MS + 31_013);
  });

  it("has no label if labels are redacted, not even in the owner id", () => {
    const owner = "ReH8GUZ6AOmR69do/1/30000/1/secret%20label";
    const hidden = { ...context, redact: new Set(["label"] as const) };
    const shown = rowOf(
      entry({ holders: [holder({ owner, label: "secret label" })], label: "secret label" }),
      hidden,
      [],
      undefined,
    );
    expect(JSON.stringify(shown)).not.toContain("secret");
    expect(shown.holders[0]?.owner).toBe("ReH8GUZ6AOmR69do/1/30000/1");
    expect(publicOwner("legacy/1/2/3/x", hidden.redact)).toBe("legacy/1/2/3/x");
  });
});

describe("a lock that needs another topology", () => {
  it("names the servers that have it, in lists and in deadlocks", () => {
    const [server, other] = [
      { index: 0, address: "10.0.0.0:6379" },
      { index: 1, address: "10.0.0.1:6379" },
    ];
    const needsTopology = "single-server";
    expect(row({ needsTopology, server }).onServers).toEqual(["10.0.0.0:6379"]);
    const perServer = [entry({ server }), entry({ server: other })];
    expect(row({ needsTopology, perServer }).onServers).toEqual(["10.0.0.0:6379", "10.0.0.1:6379"]);
    expect(row({}).onServers).toEqual([]);
    // Some client libraries do not tell the address of their server.
    const unnamed = [entry({ server }), entry({ server: { index: 2, address: undefined } })];
    expect(row({ needsTopology, perServer: unnamed }).onServers).toEqual(["10.0.0.0:6379", "server 2"]);
    const claim = { kind: "mutex", name: "a", key: undefined, owner: "o", label: undefined, sinceAtMs: 1 } as const;
    const who = { clientId: "c", host: "h", pid: 1, clientName: undefined };
    const holds = { ...claim, needsTopology, server, token: 1, leaseLeftMs: 1 } as const;
    const { members } = deadlockView({ sinceAtMs: 1, members: [{ ...who, holds, waits: claim }] }, new Set());
    expect(members).toMatchObject([{ holds: { onServers: ["10.0.0.0:6379"] }, waits: { onServers: [] } }]);
  });

  it("can be viewed, but offers no actions", async () => {
    const viewer = { may: () => Promise.resolve(true) } as unknown as Viewer;
    const detail = (more: Parameters<typeof entry>[0]): LockDetail => ({ row: row(more) }) as LockDetail;
    const actions = async (more: Parameters<typeof entry>[0]): Promise<readonly string[]> =>
      (await lockAnswer(detail(more), { viewer, allow: ["release", "pause"], atMs: NOW_MS })).actions;
    expect(await actions({ kind: "mutex" })).toEqual(["release", "pause"]);
    expect(await actions({ kind: "mutex", needsTopology: "single-server" })).toEqual([]);
    expect(await actions({ kind: "redlock", needsTopology: "redlock" })).toEqual([]);
  });
});

describe("changes of a leader", () => {
  it("are counted from the first term that was seen, and that time is available", () => {
    const terms = new Terms();
    expect(terms.watchedSince("election:a")).toBeNull();
    terms.see("election:a", (NOW_MS - 1_000) * 1_000, NOW_MS);
    terms.see("election:a", (NOW_MS + 5_000) * 1_000, NOW_MS + 6_000);
    expect(terms.watchedSince("election:a")).toBe(NOW_MS);
    expect(terms.changesSince("election:a", NOW_MS)).toBe(1);
  });
});

describe("failed sign-ins", () => {
  it("are counted by address and in total, and expire after a minute", () => {
    let nowMs = 0;
    const attempts = new Attempts(() => nowMs);
    for (let i = 0; i < 50; i += 1) attempts.failed("1.2.3.4", "an old token that a script repeats");
    expect(attempts.blockedForMs("1.2.3.4")).toBe(0);
    for (let i = 0; i < 4; i += 1) attempts.failed("1.2.3.4", `wrong ${i}`);
    expect(attempts.blockedForMs("1.2.3.4")).toBe(60_000);
    expect(attempts.blockedForMs("5.6.7.8")).toBe(0);
    for (let i = 0; i < 95; i += 1) attempts.failed(`10.0.0.${i}`, "wrong");
    expect(attempts.blockedForMs("5.6.7.8")).toBeGreaterThan(0);
    nowMs = 60_000;
    expect(attempts.blockedForMs("1.2.3.4")).toBe(0);
    expect(attempts.blockedForMs("5.6.7.8")).toBe(0);
  });
});

describe("the history as CSV", () => {
  it("quotes special characters, and does not let a name become a formula", () => {
    const told = {
      id: "1",
      writtenAtMs: NOW_MS,
      kind: "mutex",
      outcome: "forced",
      token: 5,
      owner: null,
      host: null,
      pid: null,
      app: null,
      waitedMs: 1,
      heldMs: 2,
      sinceAtMs: null,
      label: null,
    } as const;
    const rows: HistoryRow[] = [
      { ...told, name: '=HYPERLINK("http://evil")', reason: 'a "word", or two\nlines', by: "-1+1" },
    ];
    const [, line = ""] = csvOf({ rows, isCut: false }).split(/\r\n/);
    expect(line).toContain(`"'=HYPERLINK(""http://evil"")"`);
    expect(csvOf({ rows, isCut: false })).toContain('"a ""word"", or two\nlines"');
    expect(csvOf({ rows, isCut: false })).toContain(",'-1+1");
  });
});

describe("the badge", () => {
  it("is red for all common names of production", () => {
    for (const name of ["prod", "PROD-eu", "production", "live"]) expect(environmentOf(name)?.tone).toBe("danger");
    for (const name of ["staging", "preprod", "uat"]) expect(environmentOf(name)?.tone).toBe("caution");
    for (const name of ["dev", "products", "local"]) expect(environmentOf(name)?.tone).toBe("calm");
    expect(environmentOf(undefined)).toBeNull();
  });
});

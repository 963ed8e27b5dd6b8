import { describe, expect, it } from "vitest";
import type { LockRow } from "../src/api.js";
import { auditToStderr } from "../src/audit.js";
import { readEvents } from "./event-reader.js";
import { type Answer, redisScene, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();

/** Names and labels that some layer could misinterpret. */
const CRAFTED = [
  "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "..",
  "../../api/actions/release",
  "a/b?c=d#e&f",
  "__proto__",
  "constructor",
  "line\n\nevent: state\ndata: {}\n\n",
  "\r\nSet-Cookie: a=b",
  "\u2028\u2029\u0000\u001b[31m",
  "{{constructor.constructor('return 1')()}}",
  "}x",
  "%00%2e%2e",
  '=HYPERLINK("http://evil")',
  "\u202eesrever",
  "é".repeat(256),
];

describe("a lock with a crafted name and label", () => {
  it("is shown as text, and can be viewed and released like any other", async () => {
    const site = await startConsole({ holdfast: redis.holdfast, allow: ["release"] });
    const page = await site.signIn('ana "<b>"');
    const worker = redis.another({ clientName: "<b>worker</b>" });
    for (const name of CRAFTED) await worker.mutex(name).acquire({ label: name.slice(0, 100) });

    const stream = await readEvents(site.port, "/api/events?topics=locks,clients", {
      authorization: `Bearer ${TOKEN}`,
    });
    const { data } = await stream.next("state", ({ locks, clients }) => locks !== null && clients !== null);
    const shown = new Map<string, LockRow>(data.locks.rows.map((row: LockRow) => [row.name, row]));
    for (const name of CRAFTED) expect(shown.get(name)).toMatchObject({ name, label: name.slice(0, 100) });
    expect(stream.events.map((event) => event.name)).not.toContain("message");
    expect(new Set(stream.events.map((event) => event.name).filter((name) => name !== "beat"))).toEqual(
      new Set(["state"]),
    );
    stream.close();

    for (const name of CRAFTED) {
      const path = `api/lock?kind=mutex&name=${encodeURIComponent(name)}`;
      const { status, json, headers } = await page.get(path);
      expect([name, status, json.row.name]).toEqual([name, 200, name]);
      expect(headers["content-type"]).toContain("application/json");
      expect(headers["set-cookie"]).toBeUndefined();
      const [{ owner, token }] = json.holders;
      const done = await page.post("api/actions/release", {
        kind: "mutex",
        name,
        owner,
        token,
        reason: `why ${name}`.slice(0, 60),
      });
      expect([name, done.status]).toEqual([name, 200]);
    }
    expect(site.audit.map(({ name, outcome }) => [name, outcome])).toEqual(CRAFTED.map((name) => [name, "done"]));
    const csv = await page.get("api/history.csv");
    expect(csv.headers["content-disposition"]).toContain("attachment");
    expect(csv.text).not.toMatch(/(^|,)=HYPER/m);
  });

  it("cannot split an audit line", () => {
    const written: string[] = [];
    const write = process.stderr.write.bind(process.stderr);
    process.stderr.write = ((text: string) => written.push(text) > 0) as typeof write;
    try {
      for (const name of CRAFTED) {
        const line = {
          atMs: 1,
          action: "release",
          kind: "mutex",
          token: 1,
          who: name,
          address: "::1",
          outcome: "done",
        } as const;
        auditToStderr({ ...line, name, reason: name, detail: name });
      }
    } finally {
      process.stderr.write = write;
    }
    expect(written.map((text) => text.split("\n").length)).toEqual(CRAFTED.map(() => 2));
  });
});

describe("a redacted field", () => {
  it("is in no response and no event, and actions on its lock still work", async () => {
    const site = await startConsole({
      holdfast: redis.holdfast,
      redact: ["label", "value"],
      allow: ["release", "resign"],
    });
    const page = await site.signIn();
    const lease = await redis.holdfast.mutex("private").acquire({ label: "zqx customer A" });
    const waiting = redis.another().mutex("private").acquire({ label: "zqx customer B" });
    const leadership = await redis.holdfast.election("private-leader").campaign("http://zqx.host:7000");
    const all = "topics=locks,clients,semaphores,elections,lock&kind=mutex&name=private";
    const stream = await readEvents(site.port, `/api/events?${all}`, { cookie: page.cookie });
    await stream.next("state", ({ lock, elections }) => lock !== null && elections !== null);
    const answers = await Promise.all(
      [
        "api/locks",
        "api/lock?kind=mutex&name=private",
        "api/clients",
        "api/semaphores",
        "api/elections",
        "api/history",
      ].map((path) => page.get(path)),
    );
    const everything = stream.raw() + answers.map(({ text }) => text).join("");
    expect(everything).not.toMatch(/zqx/);
    expect(everything).toContain("private-leader");
    stream.close();
    const [{ owner, token }] = (answers[1] as Answer).json.holders;
    const done = await page.post("api/actions/release", {
      kind: "mutex",
      name: "private",
      owner,
      token,
      reason: "test",
    });
    expect([done.status, /zqx/.test(done.text)]).toEqual([200, false]);
    await (await waiting).release();
    await lease.release().catch(() => {});
    await leadership.release();
  });
});

it("refuses a kind that this topology does not have, instead of failing", async () => {
  const site = await startConsole({ holdfast: redis.holdfast });
  const { status, json } = await site.get("api/lock?kind=redlock&name=orders");
  expect([status, json.detail]).toEqual([400, "this topology has no locks of kind redlock"]);
});

/** `holdfast ls` if a server stops replying while the list is read. */
import { Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast } from "holdfast";
import { survey } from "holdfast/admin";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LONG_MS } from "../../../holdfast/src/testing/delays.js";
import { WatchedStore } from "../../../holdfast/tests/unit/watched-store.js";
import { parseLine } from "../../src/frame/command-line.js";
import { commonFlags } from "../../src/frame/flags.js";
import type { Streams } from "../../src/frame/streams.js";
import { ls } from "../../src/verbs/ls/ls.js";

let store: WatchedStore;
let holdfast: Holdfast;
beforeEach(() => {
  store = new WatchedStore(new Keyspace());
  holdfast = createHoldfast({ store, commandTimeoutMs: LONG_MS, failoverGrace: "off" });
});
afterEach(async () => {
  store.fateOf = () => "answered";
  await holdfast.close();
});

/** Runs `ls` on the store of this test. */
async function list(...words: readonly string[]): Promise<{ out: string; err: string; error: unknown }> {
  const text = { out: "", err: "" };
  const streams = {
    stdout: { write: (more: string) => (text.out += more) },
    stderr: { write: (more: string) => (text.err += more) },
    env: {},
  } as unknown as Streams;
  const line = parseLine(ls, words);
  const call = {
    ...{ ...line, common: commonFlags(line.values, {}), streams },
    connect: async () => ({ holdfast, nodes: () => [], close: async () => {} }),
  } as unknown as Parameters<typeof ls.run>[0];
  const error = await ls.run(call).then(
    () => undefined,
    (one: unknown) => one,
  );
  return { ...text, error };
}

/** Lets the server reply to the first `count` scans only. */
function replyTo(count: number): void {
  let scans = 0;
  store.fateOf = ({ name }) => (name === "admin/scan" && ++scans > count ? "reply lost" : "answered");
}

const LIMIT = 20;
/** Only every second lock passes this filter, which `ls` itself applies, so it reads more than one page of locks. */
const WORDS = ["--waiting", "--limit", String(LIMIT), "-o", "name", "--no-headings"];

/** Acquires 60 mutexes, each second one with a waiter. Returns the names with waiters and the scans for one page. */
async function fill(): Promise<{ readonly awaited: readonly string[]; readonly scans: number }> {
  const names = Array.from({ length: 60 }, (_, i) => `job:${i}`);
  await Promise.all(names.map((name) => holdfast.mutex(name).acquire()));
  const awaited = names.filter((_, i) => i % 2 === 0);
  for (const name of awaited)
    holdfast
      .mutex(name)
      .acquire({ waitMs: Infinity })
      .catch(() => {});
  await expect.poll(async () => (await list("--waiting", "-o", "name")).out.match(/^job:/gm)).toHaveLength(30);
  store.taken();
  await survey(holdfast, { limit: LIMIT });
  return { awaited, scans: store.taken().filter((name) => name === "admin/scan").length };
}

test("a later page that fails ends the list: what was read is shown, with the cursor to continue", async () => {
  const { awaited, scans } = await fill();
  replyTo(scans);
  const cut = await list(...WORDS);
  const shown = cut.out.trim().split("\n");
  expect(shown.filter((name) => awaited.includes(name))).toEqual(shown);
  expect(shown.length).toBeLessThan(LIMIT);
  expect(cut.error).toMatchObject({ code: "ERR_LOCK_STORE" });
  const cursor = /--cursor (\S+)/.exec(cut.err)?.[1] ?? "";
  replyTo(scans);
  const document = await list(...WORDS, "--json");
  expect(JSON.parse(document.out)).toMatchObject({ locks: shown.map((name) => ({ name })), nextCursor: cursor });
  expect(document.error).toMatchObject({ code: "ERR_LOCK_STORE" });

  replyTo(Infinity);
  const rest = await list(...WORDS, "--limit", "100", "--cursor", cursor);
  expect(rest.error).toBeUndefined();
  expect([...shown, ...rest.out.trim().split("\n")].toSorted()).toEqual(awaited.toSorted());
});

test("a first page that fails rejects without a list, and so does a later one with --watch", async () => {
  const { scans } = await fill();
  replyTo(0);
  expect(await list(...WORDS)).toMatchObject({ out: "", error: { code: "ERR_LOCK_STORE" } });
  replyTo(scans);
  expect(await list(...WORDS, "--watch")).toMatchObject({ out: "", error: { code: "ERR_LOCK_STORE" } });
});

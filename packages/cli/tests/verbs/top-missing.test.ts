/** `top` on a terminal while one of several independent servers does not reply. */
import { PassThrough } from "node:stream";
import { Keyspace } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";
import { expect, test } from "vitest";
import { LONG_MS, until } from "../../../holdfast/src/testing/delays.js";
import { WatchedStore } from "../../../holdfast/tests/unit/watched-store.js";
import { commonFlags } from "../../src/frame/flags.js";
import type { Streams } from "../../src/frame/streams.js";
import { top } from "../../src/verbs/top/top.js";

test("a line above the list says that locks are missing, until the server replies again", async () => {
  const stores = [new Keyspace(), new Keyspace(), new Keyspace()].map((keyspace) => new WatchedStore(keyspace));
  const holdfast = createHoldfast({ redlock: stores, commandTimeoutMs: LONG_MS });
  await holdfast.redlock("ledger").acquire({ leaseMs: 600_000 });
  const terminal = { isTTY: true, columns: 100, rows: 12 };
  const stdin = Object.assign(new PassThrough(), terminal);
  const stdout = Object.assign(new PassThrough(), terminal);
  let screen = "";
  // Each draw is one write.
  stdout.on("data", (text) => {
    screen = String(text);
  });
  const values = { interval: "100ms" };
  const ended = top.run({
    ...{ values, positionals: [], common: commonFlags({}, { HOLDFAST_COLOR: "never" }) },
    streams: { stdin, stdout, stderr: new PassThrough(), env: {} } as unknown as Streams,
    connect: async () => ({ holdfast, nodes: () => [], close: () => holdfast.close() }),
  } as unknown as Parameters<typeof top.run>[0]);
  await until(() => screen.includes("ledger"), "the list");
  expect(screen).not.toContain("missing");
  const [lost] = stores as [WatchedStore];
  lost.fateOf = () => "reply lost";
  await until(() => screen.includes("1 server did not reply: its locks are missing from the list"), "the line");
  expect(screen).toContain("ledger");
  lost.fateOf = () => "answered";
  await until(() => !screen.includes("missing"), "the list of all servers");
  stdin.write("q");
  expect(await ended).toBe(0);
});

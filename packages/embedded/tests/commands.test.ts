import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { COMMANDS } from "../src/commands/table.js";
import { type Answer, embeddedServer, realServer, type TestServer } from "./both-servers.js";
import { type Expected, type Row, TABLE } from "./command-table.js";

const SERVERS: readonly (readonly [string, () => Promise<TestServer>])[] = [
  ["the embedded server", async () => embeddedServer()],
  ["Redis", realServer],
];

describe.each(SERVERS)("%s replies as the table expects", (_, start) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start();
  });
  beforeEach(() => server.clear());
  afterAll(() => server.stop());

  it.each(Object.entries(TABLE))("for %s", async (_topic, rows) => {
    const answers: [Row[0], Answer][] = [];
    for (const [command] of rows) answers.push([command, sorted(command, await server.command(words(command)))]);
    expect(answers).toEqual(rows.map(([command, expected]) => [command, answerOf(expected)]));
  });
});

describe("the table", () => {
  it("has a row for every command", () => {
    const rows = Object.values(TABLE).flat();
    const named = new Set(rows.map(([command]) => words(command)[0]?.toUpperCase()));
    expect(COMMANDS.filter((command) => !named.has(command))).toEqual([]);
  });
});

function words(command: Row[0]): readonly string[] {
  return typeof command === "string" ? command.split(" ") : command;
}

function sorted(command: Row[0], answer: Answer): Answer {
  if (words(command)[0] !== "SMEMBERS" || !("reply" in answer)) return answer;
  return { reply: (answer.reply as string[]).sort() };
}

function answerOf(expected: Expected): Answer {
  if (typeof expected !== "object" || expected === null) return { reply: expected };
  if ("ok" in expected) return { status: expected.ok };
  return "err" in expected ? { error: expected.err } : { reply: expected };
}

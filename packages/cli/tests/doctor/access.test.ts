/**
 * Tests permissions and passwords on a real server: the doctor names what is missing, and the printed command fixes it.
 */
import { leastPrivilege } from "holdfast/diagnosis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { TRIED_IN_SCRIPTS } from "../../src/doctor/read/permissions.js";
import { at, examined, expectNothingCritical, expectNoWarning, said } from "./examining.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SMALLEST = leastPrivilege("hf").server;
/** Rules of a topology that this test does not use. */
const NOT_HERE = new Set(["&hf:redlock:*"]);

let server: RedisServer;
let users = 0;

beforeAll(async () => {
  // The second address does not belong to this machine, so no client can connect to it. But the server is configured to
  // accept connections there.
  server = await startRedis({ args: ["--bind", "127.0.0.1 -192.0.2.1", "--protected-mode", "no"] });
});
afterAll(() => server?.stop());

/** Creates a user with these rules, and a target that connects as this user. */
async function user(rules: readonly string[]): Promise<{ name: string; target: ReturnType<typeof at> }> {
  users += 1;
  const name = `user${users}`;
  await server.command("ACL", "SETUSER", name, "on", ">secret", "resetchannels", ...rules);
  return { name, target: at(server.port, { username: name, password: "secret" }) };
}

test("the minimal user has all permissions that locks need, and missing extras are only an info", async () => {
  const { name, target } = await user(SMALLEST);
  const findings = await examined([target], ["acl", "scripts", "pubsub", "grace", "eviction", "clock-skew", "latency"]);
  expectNothingCritical(findings);
  expectNoWarning(findings);
  expect(said(findings, "acl")).toMatch(/^info: user user\d+ lacks \+xadd, \+xrevrange, \+eval, \+scan$/);
  expect(said(findings, "scripts")).toMatch(/^ok/);
  expect(said(findings, "pubsub")).toMatch(
    /^(ok|warning): a message to a plain inbox arrived after .*; 1 receiver counted/,
  );
  expect(name).toBe("user1");
});

test.each(SMALLEST.filter((rule) => !NOT_HERE.has(rule)))(
  "a missing %s is named, and the printed command fixes it",
  async (rule) => {
    const { name, target } = await user(SMALLEST.filter((one) => one !== rule));
    // A doctor's script that another user has loaded can be called without the permission to load scripts.
    const lacking = (await examined([target], ["acl"])).filter(({ status }) => status === "finding");
    const named = lacking.filter(({ measured }) => measured.split(/[ ,]+/).includes(rule));
    expect(named.map(({ measured }) => measured)).toHaveLength(1);
    expect(named[0]?.severity).toMatch(/critical|warning/);
    const fix = named[0]?.fix ?? "";
    expect(fix.startsWith(`ACL SETUSER ${name} `)).toBe(true);
    await server.command("ACL", "SETUSER", ...fix.split(" ").slice(2));
    const mended = (await examined([target], ["acl"])).filter(({ severity }) => severity !== "info");
    expect(mended).toEqual([]);
  },
);

test("without the permission to read the records of clients, the checks that need them are unknown", async () => {
  const { target } = await user([...SMALLEST, "+scan", "-hmget"]);
  await server.command("HSET", "hf:client:AAAAAAAAAAAAAAAA", "host", "h", "pid", "1", "protocol", "1");
  for (const id of ["client-timeouts", "protocols"]) {
    expect(said(await examined([target], [id]), id)).toMatch(/^unknown: .*1 client for which this is unknown$/);
  }
  await server.command("DEL", "hf:client:AAAAAAAAAAAAAAAA");
});

test("the doctor tries every permission of the minimal user, those of scripts within a script", () => {
  const elsewhere = ["+evalsha", "+script|load", "+subscribe", "+unsubscribe"];
  const rules = SMALLEST.filter((rule) => rule.startsWith("+"));
  expect([...TRIED_IN_SCRIPTS, ...elsewhere].filter((rule) => !/shard|cluster|^\+x/.test(rule)).toSorted()).toEqual(
    rules.toSorted(),
  );
});

test("without channel permissions no message arrives, and without INFO the checks that need it are unknown", async () => {
  const deaf = await user(SMALLEST.filter((rule) => !rule.startsWith("&")));
  expect(said(await examined([deaf.target], ["pubsub"]), "pubsub")).toMatch(
    /^warning: no message could be sent to an inbox: NOPERM/,
  );
  const blind = await user(SMALLEST.filter((rule) => rule !== "+info"));
  const findings = await examined(
    [blind.target],
    ["eviction", "memory", "persistence", "grace", "replicas", "version", "acl"],
  );
  for (const id of ["eviction", "memory", "persistence", "grace", "replicas", "version"]) {
    expect(said(findings, id), id).toMatch(/^unknown/);
  }
});

test("a user that cannot load scripts gets critical findings, because it cannot acquire locks", async () => {
  const { target } = await user(["~hf:*", "&hf:*", "+@all", "-script", "-evalsha", "-eval"]);
  const findings = await examined([target], ["scripts", "acl"]);
  expect(said(findings, "scripts")).toMatch(/^critical: \d+ of \d+ scripts are refused: .*NOPERM/);
  expect(said(findings, "acl")).toMatch(/critical: user user\d+ lacks .*\+script\|load/);
});

test("permissions are checked for the prefix that was given", async () => {
  const { target } = await user(leastPrivilege("app").server);
  expect(said(await examined([target], ["acl"], { prefix: "app" }), "acl")).toMatch(/^info/);
  expect(said(await examined([target], ["acl"]), "acl")).toContain("~hf:*");
});

test("a server without a password is exposed unless protected mode, its default user or a password prevents access", async () => {
  const exposure = async (): Promise<string> =>
    said(await examined([at(server.port, { username: "admin", password: "secret" })], ["exposure"]), "exposure");
  await server.command("ACL", "SETUSER", "admin", "on", ">secret", "~*", "&*", "+@all");
  expect(await exposure()).toBe("critical: no password, bind 127.0.0.1 -192.0.2.1, protected-mode no");
  await server.command("CONFIG", "SET", "protected-mode", "yes");
  expect(await exposure()).toMatch(/^info: no password, bind .*, protected-mode yes/);
  await server.command("ACL", "SETUSER", "default", "-@all", "+ping", "+acl");
  expect(await exposure()).toBe("ok: no access to keys without a password");
  await server.command("ACL", "SETUSER", "default", "+@all", "resetpass", ">hidden");
  expect(await exposure()).toBe("ok: no access without a password");
  // Without a password the doctor cannot examine the server, and must not report that all is well.
  await expect(examined([at(server.port)], ["exposure"])).rejects.toThrow("NOAUTH");
});

test("a command that scripts cannot call on this server is named", async () => {
  const renamed = await startRedis({ args: ["--rename-command", "TIME", ""] });
  const quiet = await startRedis({ args: ["--rename-command", "PUBLISH", ""] });
  try {
    expect(said(await examined([at(renamed.port)], ["scripts"]), "scripts")).toMatch(
      /^critical: this server does not let scripts call TIME$/,
    );
    expect(said(await examined([at(quiet.port)], ["scripts"]), "scripts")).toMatch(
      /^warning: this server does not let scripts call PUBLISH$/,
    );
  } finally {
    await Promise.all([renamed.stop(), quiet.stop()]);
  }
});

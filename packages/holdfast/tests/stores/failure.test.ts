import { expect, test } from "vitest";
import { failureOf, isReadOnly, isUnknownScript, lackOf, missingPermission } from "../../src/stores/failure.js";

const SHA = "0123456789abcdef0123456789abcdef01234567";
const REFUSED_FOR_NOW = { mayHaveRun: false, transient: true };
const REFUSED = { mayHaveRun: false, transient: false };
const MAYBE = { mayHaveRun: true, transient: true };
const BROKEN = { mayHaveRun: true, transient: false };

test.each([
  ["LOADING Redis is loading the dataset in memory", REFUSED_FOR_NOW],
  ["READONLY You can't write against a read only replica.", REFUSED_FOR_NOW],
  ["MASTERDOWN Link with MASTER is down", REFUSED_FOR_NOW],
  ["CLUSTERDOWN The cluster is down", REFUSED_FOR_NOW],
  ["TRYAGAIN Multiple keys request during rehashing of slot", REFUSED_FOR_NOW],
  [`ERR Script attempted to access a non local key in a cluster node script: ${SHA}, on @user_script:1.`, MAYBE],
  ["BUSY Redis is busy running a script.", REFUSED_FOR_NOW],
  ["MISCONF Redis is configured to save RDB snapshots", REFUSED_FOR_NOW],
  ["OOM command not allowed when used memory > 'maxmemory'.", REFUSED_FOR_NOW],
  ["NOSCRIPT No matching script.", REFUSED_FOR_NOW],
  ["An error was signalled by the server: - NoScriptError: No matching script.", REFUSED_FOR_NOW],
  ["An error was signalled by the server: - BusyLoadingError: Redis is loading", REFUSED_FOR_NOW],
  [`OOM command not allowed when used memory > 'maxmemory'. script: ${SHA}, on @user_script:1.`, REFUSED_FOR_NOW],
  [`READONLY You can't write against a read only replica. script: ${SHA}, on @user_script:1.`, REFUSED_FOR_NOW],
  ["An error was signalled by the server: - ReadOnly: You can't write", REFUSED_FOR_NOW],
  ["Stream isn't writeable and enableOfflineQueue options is false", REFUSED_FOR_NOW],
  ["The client is offline", REFUSED_FOR_NOW],
  ["NOAUTH Authentication required.", REFUSED],
  ["NOPERM this user has no permissions to run the 'evalsha' command", REFUSED],
  ["An error was signalled by the server: - PermissionDenied: this user has no permissions", REFUSED],
  ["An error was signalled by the server: - CrossSlot: Keys in request don't hash to the same slot", REFUSED],
  ["CROSSSLOT Keys in request don't hash to the same slot", REFUSED],
  ["ERR unknown command 'EVALSHA', with args beginning with: ", REFUSED],
  ["An error was signalled by the server: - ResponseError: unknown command 'EVALSHA'", REFUSED],
  ["The client is closed", REFUSED],
  ["Unable to execute requests; the client is closed. Please create a new client.", REFUSED],
  [`WRONGTYPE Operation against a key script: ${SHA}, on @user_script:1.`, BROKEN],
  [`NOPERM this user has no permissions script: ${SHA}, on @user_script:1.`, BROKEN],
  [`ERR Error running script (call to f_${SHA}): @user_script:1: boom`, BROKEN],
  [
    `ERR Error running script (call to f_${SHA}): @user_script:1: @user_script: 1: -OOM command not allowed.`,
    REFUSED_FOR_NOW,
  ],
  [
    `ERR Error running script (call to f_${SHA}): @user_script:1: @user_script: 1: -READONLY You can't.`,
    REFUSED_FOR_NOW,
  ],
  ["Connection is closed.", MAYBE],
  ["Command timed out", MAYBE],
  ["Socket closed unexpectedly", MAYBE],
  ["connect ECONNREFUSED 127.0.0.1:6379", MAYBE],
  ["Received connection error `Connection reset by peer`. Will attempt to reconnect", MAYBE],
  ["", MAYBE],
])("%j is classified by whether the script may have run and whether a retry may help", (message, expected) => {
  expect(failureOf(new Error(message), false)).toMatchObject(expected);
  // A request that may have been sent twice may have run, no matter what the last reply says.
  expect(failureOf(new Error(message), true)).toMatchObject({ ...expected, mayHaveRun: true });
});

test.each([undefined, null, "text", 7, { message: "LOADING" }, Object.create(null)])(
  "a rejection with %o, which is not an Error, counts as transient and may have run",
  (cause) => {
    expect(failureOf(cause, false)).toEqual({ ...MAYBE, cause });
    expect(isUnknownScript(cause)).toBe(false);
  },
);

test.each([
  "MOVED 866 127.0.0.1:7001",
  "ASK 866 127.0.0.1:7001",
  "An error was signalled by the server: - Moved: 866 127.0.0.1:7001",
  "An error was signalled by the server: - Ask: 866 127.0.0.1:7001",
])("too many redirections are transient for a cluster client and permanent for a plain one: %s", (message) => {
  expect(failureOf(new Error(message), false, true)).toMatchObject(REFUSED_FOR_NOW);
  expect(failureOf(new Error(message), false)).toMatchObject(REFUSED);
});

test.each([
  [
    `ERR Error running script (call to f_${SHA}): @user_script:32: @user_script: 32: ERR syntax error`,
    "needs Redis 6.2",
  ],
  [
    `An error was signalled by the server: - ResponseError: Error running script (call to f_${SHA}): ERR syntax error`,
    "needs Redis 6.2",
  ],
  ["ERR unknown command 'EVALSHA', with args beginning with: ", "needs Lua scripts"],
  ["ERR unknown command `script`, with args beginning with: `LOAD`, ", "needs Lua scripts"],
  ["ERR Could not find scripting engine 'lua'", "needs Lua scripts"],
  ["ERR syntax error", undefined],
  ["ERR unknown command 'WAIT', with args beginning with: ", undefined],
])("%j says what the server lacks: %s", (message, expected) => {
  const lack = lackOf(new Error(message));
  if (expected === undefined) expect(lack).toBeUndefined();
  else expect(lack).toContain(expected);
});

test.each([
  ["NOPERM this user has no permissions to run the 'script' command or its subcommand", "+script|load"],
  ["NOPERM this user has no permissions to run the 'cluster' command or its subcommand", "+cluster|myid"],
  ["NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", "+evalsha"],
  ["NOPERM User locks has no permissions to run the 'script|load' command", "+script|load"],
])("%j names the permission %s, without the other subcommands", (message, rule) => {
  expect(missingPermission(new Error(message), {})).toBe(rule);
});

test.each(["READONLY You can't write", "An error was signalled by the server: - ReadOnly: You can't write"])(
  "%j says that the server is a replica",
  (message) => {
    expect(isReadOnly(new Error(message))).toBe(true);
    expect(isReadOnly(new Error("MASTERDOWN Link with MASTER is down"))).toBe(false);
  },
);

/** The missing permission is read from the error texts of every server and client library. */
import { expect, test } from "vitest";
import { missingPermission } from "../../src/stores/failure.js";

const source = `-- holdfast test/one
local owner = ARGV[1]
redis.call('ZADD', KEYS[1], 1, owner)
redis.call('PUBLISH', redis.call('GET', KEYS[2]), redis.pcall('PUBSUB', 'NUMSUB', owner)[2])
redis.call(
  'SET', KEYS[1], 1, 'PX', 10
)
local x = tostring(redis.call('HGET', KEYS[1], 'a')
  .. owner)
return 1`;
const refused = { source, keys: ["hf:a", "hf:b"], channels: ["hf:in:*"] };
const IN_SCRIPT = "The user executing the script can't run this command or subcommand";
const SHA = "77c4e16fff2fec2c9f2e1d7c13afd5bd9905d0b1";

test.each([
  ["NOPERM this user has no permissions to run the 'evalsha' command", "+evalsha"],
  ["NOPERM this user has no permissions to run the 'script|load' command or its subcommand", "+script|load"],
  ["NOPERM User locks has no permissions to run the 'zadd' command", "+zadd"],
  [
    "An error was signalled by the server: - PermissionDenied: this user has no permissions to run the 'ZADD' command",
    "+zadd",
  ],
  [`ERR ${IN_SCRIPT} script: ${SHA}, on @user_script:3.`, "+zadd"],
  [`ERR Error running script (call to f_${SHA}): @user_script:3: @user_script: 3: ${IN_SCRIPT}`, "+zadd"],
  [`An error was signalled by the server: - ResponseError: ${IN_SCRIPT} script: ${SHA}, on @user_script:3.`, "+zadd"],
  [`ERR ${IN_SCRIPT} script: ${SHA}, on @user_script:4.`, "+publish +get +pubsub|numsub"],
  [`ERR ${IN_SCRIPT} script: ${SHA}, on @user_script:9.`, "+hget"],
  [`ERR ${IN_SCRIPT} script: ${SHA}, on @user_script:1.`, "+ for its commands"],
  [`ERR ACL failure in script: User locks has no permissions to run the 'zadd' command script: ${SHA}`, "+zadd"],
  ["NOPERM this user has no permissions to access one of the keys used as arguments", "~hf:a ~hf:b"],
  ["NOPERM No permissions to access a key", "~hf:a ~hf:b"],
  ["NOPERM User locks has no permissions to access the 'hf:a' key", "~hf:a ~hf:b"],
  ["NOPERM this user has no permissions to access one of the channels used as arguments", "&hf:in:*"],
  ["NOPERM No permissions to access a channel", "&hf:in:*"],
  [`ERR The user executing the script can't publish to the channel mentioned in the command ${SHA}`, "&hf:in:*"],
  ["READONLY You can't write against a read only replica.", undefined],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", undefined],
  ["no reply within 2000 ms", undefined],
])("the missing permission in %j is %s", (message, missing) => {
  expect(missingPermission(new Error(message), refused)).toBe(missing);
});

test("a missing permission on unknown commands or keys is reported without their names", () => {
  expect(missingPermission(`${IN_SCRIPT}`, {})).toBe("+ for its commands");
  expect(missingPermission("NOPERM No permissions to access a key", {})).toBe("~ for its keys");
  expect(missingPermission(undefined, refused)).toBeUndefined();
});

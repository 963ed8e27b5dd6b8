/** The rules in the world of readers and writers. */

import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import { EVERYTHING } from "./read-write-client.js";
import { ReadWriteWorld, readWriteKind } from "./read-write-world.js";
import { type Rule, rulesOf } from "./rule.js";

const READER = [1] as const;
const WRITER = [EVERYTHING] as const;

/** A world with one read-write lock. */
export function readWrite(
  clients: LockSetting["clients"],
  budget: Partial<Budget>,
  isSymmetric: boolean = false,
): LockSetting {
  return { kind: readWriteKind, clients, enqueue: true, budget, isSymmetric };
}

const { script, client } = rulesOf(ReadWriteWorld, "W6");

/** The rules of a read-write lock. */
export const READ_WRITE_RULES: readonly Rule[] = [
  script(
    "writer-waits-for-all",
    "a writer waits for every reader",
    readWrite([READER, WRITER], { delays: 0 }),
    {
      script: "permits/acquire",
      from: "if not record and used + weight <= capacity and (used",
      to: "if not record and (used",
    },
    { script: "permits/acquire", from: "if found == 0 and used + weight <= capacity then", to: "if found == 0 then" },
  ),
  script(
    "writer-stops-readers",
    "readers that come after a waiting writer wait behind it",
    readWrite([READER, WRITER, READER], { delays: 0 }),
    { script: "permits/acquire", from: "  and redis.call('EXISTS', KEYS[5], KEYS[6]) == 0 then", to: "  then" },
  ),
  script(
    "own-release-only",
    "a reader's release takes no other reader's hold",
    readWrite([READER, READER, WRITER], {}),
    {
      script: "permits/release",
      from: "redis.call('HSET', KEYS[1], 'used', rest)",
      to: "redis.call('HSET', KEYS[1], 'used', 0)",
    },
  ),
  script(
    "readers-by-batch",
    "a release grants all readers up to the next writer",
    readWrite([WRITER, READER, READER], { delays: 0 }),
    {
      script: "permits/release",
      from: "left = left - 1\n      redis.call('ZREM', KEYS[5], head)",
      to: "left = 0\n      redis.call('ZREM', KEYS[5], head)",
    },
  ),
  script(
    "downgrade-wakes",
    "a downgrade grants the readers that wait next",
    readWrite([WRITER, READER], { changes: 1, delays: 0 }),
    { script: "permits/reweigh", from: "grantHeads()\nreturn {1,", to: "return {1," },
  ),
  script(
    "upgrade-alone",
    "only the sole reader becomes a writer",
    readWrite([READER, READER], { changes: 1, delays: 0 }),
    { script: "permits/reweigh", from: "(more > 0 and used + more > capacity)", to: "false" },
  ),
  script(
    "upgrade-has-a-new-token",
    "a reader that becomes a writer has the highest token",
    readWrite([READER, READER], { changes: 1, delays: 0 }),
    { script: "permits/reweigh", from: "latest = nextToken()", to: "latest = tonumber(latest)" },
  ),
  script(
    "changes-are-numbered",
    "a change that arrives after a later one does nothing",
    readWrite([WRITER, READER], { changes: 2, timeouts: 1, delays: 0 }),
    {
      script: "permits/reweigh",
      from: "local isLate = change - tonumber(last == '' and 0 or last) < 0",
      to: "local isLate = false",
    },
  ),
  script(
    "first-token-counts",
    "the tokens that a holder had before a change stay valid for it",
    readWrite([READER], { changes: 1, timeouts: 1, delays: 0 }),
    {
      script: "permits/reweigh",
      from: "weight, latest, slots, first, change",
      to: "weight, latest, slots, latest, change",
    },
  ),
  client(
    "downgrade-from-asking",
    "a writer that asks for a downgrade relies only on reading",
    readWrite([WRITER, READER], { changes: 1, delays: 0 }),
  ),
  client(
    "upgrade-when-confirmed",
    "a reader that asks for an upgrade writes only once it is granted",
    readWrite([READER, READER], { changes: 1, delays: 0 }),
  ),
];

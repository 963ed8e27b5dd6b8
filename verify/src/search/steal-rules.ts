/** The rules in the world of steals. */
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import type { Role } from "./place.js";
import { EVERYTHING } from "./read-write-client.js";
import { readWriteKind } from "./read-write-world.js";
import { type Rule, rulesOf } from "./rule.js";
import { StealWorld } from "./steal-world.js";

const READER = [1] as const;
const WRITER = [EVERYTHING] as const;
const PLAIN = ["plain"] as const;
const STEAL = ["steal"] as const;

/** A world in which some claims steal the lock. */
export function steal(
  clients: LockSetting["clients"],
  roles: readonly (readonly Role[])[],
  budget: Partial<Budget>,
): LockSetting {
  return { kind: readWriteKind, clients, roles, enqueue: true, budget };
}

const { script } = rulesOf(StealWorld, "W13");

/** The rules for steals. */
export const STEAL_RULES: readonly Rule[] = [
  script("steal-ends-all", "a steal ends all holds", steal([READER, WRITER], [PLAIN, STEAL], { delays: 0 }), {
    script: "web-locks/steal",
    from: "begin(capacity, state[2] or ',' .. weight .. ',')\n",
    to: "",
  }),
  script(
    "steal-once",
    "a steal that arrives after its hold has ended does nothing",
    steal([WRITER, WRITER], [PLAIN, STEAL], { copies: 1, delays: 0 }),
    { script: "web-locks/steal", from: "if string.find(steals, owner .. ',', 1, true) then", to: "if false then" },
  ),
  script(
    "steal-notifies",
    "a steal notifies each former holder",
    steal([READER, WRITER], [PLAIN, STEAL], { delays: 0 }),
    { script: "web-locks/steal", from: "notifyHolder(inbox, client, '-' .. number .. note)\n", to: "" },
  ),
  script(
    "steal-leaves-the-queue",
    "a steal leaves the waiters where they are",
    steal([WRITER, WRITER, WRITER], [PLAIN, PLAIN, STEAL], { delays: 0 }),
    {
      script: "web-locks/steal",
      from: "local token = nextToken()\n",
      to: "redis.call('DEL', KEYS[5])\nlocal token = nextToken()\n",
    },
  ),
];

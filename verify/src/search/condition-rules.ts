/** The rules that the world of a condition needs. */
import { ConditionWorld } from "./condition-world.js";
import { mutexKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import type { Role } from "./place.js";
import { type Rule, rulesOf } from "./rule.js";

const WAITER: readonly Role[] = ["plain", "wait"];
const SIGNALLER: readonly Role[] = ["signal"];

/** A world with one mutex and one condition; `roles` defines what each claim does. */
export function condition(
  roles: readonly (readonly Role[])[],
  budget: Partial<Budget>,
  more: Pick<LockSetting, "isSymmetric" | "isTimeless" | "unansweredIn"> = {},
): LockSetting {
  const clients = roles.map((claims) => claims.map(() => 1));
  return { kind: mutexKind, clients, roles, enqueue: true, budget, ...more };
}

const ONE_AND_ONE = [WAITER, SIGNALLER];
const TWO_AND_ONE = [WAITER, WAITER, SIGNALLER];
const AT_ONCE = { isSymmetric: true, isTimeless: true } as const;
const { script, client } = rulesOf(ConditionWorld, "W5");

/** The rules of a condition. */
export const CONDITION_RULES: readonly Rule[] = [
  script(
    "wait-in-one-step",
    "a waiter is in the condition's queue when the mutex becomes free",
    condition(ONE_AND_ONE, { delays: 0 }),
    {
      script: "condition/wait",
      from: "redis.call('ZADD', KEYS[6], math.max(latest + 1, now), owner)",
      to: "local _ = latest",
    },
  ),
  script("wait-hands-over", "a wait hands the mutex to its next waiter", condition(ONE_AND_ONE, { delays: 0 }), {
    script: "condition/wait",
    from: "if not handOff(inbox, nil, now) then",
    to: "if true then",
  }),
  script(
    "wait-goes-on",
    "a waiter that is in no queue anymore is told to continue",
    condition(ONE_AND_ONE, { pushes: 2, delays: 0 }),
    {
      script: "condition/wait",
      from: "if again == '1' or isQueued or holder == owner then",
      to: "if isQueued or holder == owner then",
    },
  ),
  script("signal-queues", "a signalled waiter is in the mutex's queue", condition(ONE_AND_ONE, { delays: 0 }), {
    script: "condition/signal",
    from: "redis.call('ZADD', KEYS[3], latest + 1, waiter)",
    to: "local _ = latest",
  }),
  script("signal-first", "the first waiter is signalled first", condition(TWO_AND_ONE, { delays: 0 }, AT_ONCE), {
    script: "condition/signal",
    from: "redis.call('ZPOPMIN', KEYS[4])",
    to: "redis.call('ZPOPMAX', KEYS[4])",
  }),
  script(
    "signal-once",
    "a resent signal counts once",
    condition(TWO_AND_ONE, { timeouts: 1, delays: 0 }, { ...AT_ONCE, unansweredIn: "held" }),
    {
      script: "condition/signal",
      from: "if last[1] == owner and request - last[2] <= 0 then",
      to: "if false then",
    },
  ),
  script(
    "signal-by-holder",
    "only a holder of the mutex can signal",
    condition(ONE_AND_ONE, { timeouts: 1, delays: 0 }),
    {
      script: "condition/signal",
      from: "if not holds(owner, token) then",
      to: "if false then",
    },
  ),
  script(
    "signal-skips-the-dead",
    "a process that is gone is not signalled",
    condition(TWO_AND_ONE, { crashes: 1, delays: 0 }, AT_ONCE),
    {
      script: "condition/signal",
      from: "if not isThere(channel, string.match(message, '%d+')) then",
      to: "if false then",
    },
  ),
  script(
    "quit-passes-on",
    "a signalled waiter that gives up passes the signal on",
    condition(TWO_AND_ONE, { giveUps: 1, delays: 0 }, AT_ONCE),
    { script: "condition/leave", from: "if entered ~= '2' then", to: "if false then" },
  ),
  script("quit-leaves", "a waiter that gives up leaves the queue", condition(ONE_AND_ONE, { giveUps: 1, delays: 0 }), {
    script: "condition/leave",
    from: "if redis.call('ZREM', KEYS[6], owner) == 1 then",
    to: "if redis.call('ZSCORE', KEYS[6], owner) then",
  }),
  script(
    "quit-gives-back",
    "a caller that gives up before its wait has begun releases the mutex",
    condition(ONE_AND_ONE, { giveUps: 1, delays: 0 }),
    { script: "condition/leave", from: "if holds(from, token) then", to: "if false then" },
  ),
  client("wait-ends-the-lease", "a wait ends the hold", condition(ONE_AND_ONE, { delays: 0 })),
  client(
    "undo-late-requests",
    "a late request of a waiter is undone",
    condition([WAITER], { timeouts: 1, giveUps: 1, delays: 0 }),
  ),
  client(
    "pass-on-once",
    "a signal that was used is not passed on",
    condition(TWO_AND_ONE, { giveUps: 1, delays: 0 }, AT_ONCE),
  ),
];

/** The rules in the worlds of claims: for a mutex, for permits, and for every client. */
import { type LockKind, mutexKind, permitsKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import { PlainWorld } from "./plain-world.js";
import { type Rule, rulesOf } from "./rule.js";

const ONE_EACH = [[1], [1]] as const;
const TWO_AND_ONE = [[1, 1], [1]] as const;

function mutex(
  clients: LockSetting["clients"],
  budget: Partial<Budget>,
  enqueue = true,
  clockStands = false,
): LockSetting {
  return { kind: mutexKind, clients, enqueue, clockStands, budget };
}

function permits(
  clients: LockSetting["clients"],
  budget: Partial<Budget>,
  kind: LockKind = permitsKind(2),
): LockSetting {
  return { kind, clients, enqueue: true, budget };
}

const { script, client } = rulesOf(PlainWorld, "W1–W4");

/** The rules of claims on a mutex and on permits. */
export const LOCK_RULES: readonly Rule[] = [
  script(
    "release-compares-owner",
    "a release ends only the caller's own hold",
    mutex([[1], [1], [1]], { delays: 2 }, false),
    { script: "mutex/release", from: "if isOurs and redis.call('EXISTS'", to: "if redis.call('EXISTS'" },
  ),
  script(
    "extend-compares-owner",
    "a lease is extended only for its holder",
    mutex(ONE_EACH, { renewals: 1, delays: 2 }, false),
    { script: "mutex/extend", from: "if redis.call('GET', KEYS[1]) ~= owner then", to: "if false then" },
    { script: "mutex/extend", from: "if last and last - token ~= 0 then", to: "if false then" },
  ),
  script("acquire-answers-again", "a holder that asks again gets its grant again", mutex([[1]], { timeouts: 1 }), {
    script: "mutex/acquire",
    from: "if holder == owner then",
    to: "if false then",
  }),
  script("no-barging", "a newcomer takes a free lock only if nobody waits", mutex([[1], [1], [1]], { delays: 2 }), {
    script: "mutex/acquire",
    from: "if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4], KEYS[5]) == 0 then",
    to: "if redis.call('EXISTS', KEYS[1]) == 0 then",
  }),
  script(
    "promotion",
    "a request after the end of the holder's lease makes the server grant the head of the queue",
    mutex(ONE_EACH, { crashes: 1 }),
    { script: "mutex/acquire", from: "local granted, token = handOff(inbox, owner, now)", to: "local granted, token" },
  ),
  script("skip-the-dead", "nothing is handed to a process that is gone", mutex([[1], [1]], { crashes: 1 }), {
    script: "mutex/release",
    from: "if not isThere(channel, string.match(message, '%d+')) then",
    to: "if false then",
  }),
  script("hand-off", "a release names the next holder in the same step", mutex(ONE_EACH, {}), {
    script: "mutex/release",
    from: "if not handOff(inbox) then",
    to: "if true then",
  }),
  script(
    "leave-releases",
    "a waiter that leaves releases what it was granted meanwhile",
    mutex([[1]], { giveUps: 1 }),
    {
      script: "mutex/leave",
      from: "if redis.call('GET', KEYS[1]) == owner then",
      to: "if false then",
    },
  ),
  script(
    "tokens-rise",
    "a token is higher than the last one, even within one microsecond",
    mutex(ONE_EACH, {}, true, true),
    { script: "mutex/release", from: "if last and last - now >= 0 then", to: "if false then" },
  ),
  script("queue-once", "a claim that asks again keeps its place in the queue", mutex([[1], [1], [1]], {}), {
    script: "mutex/acquire",
    from: "if not isQueued then",
    to: "if true then",
  }),
  script(
    "permits-capacity",
    "permits are granted only while there are any",
    permits([[1], [2]], {}),
    {
      script: "permits/acquire",
      from: "if not record and used + weight <= capacity and (used",
      to: "if not record and (used",
    },
    { script: "permits/acquire", from: "if found == 0 and used + weight <= capacity then", to: "if found == 0 then" },
  ),
  script(
    "permits-head-first",
    "the head of the queue is not overtaken by a smaller request",
    permits([[1], [2], [1]], {}),
    {
      script: "permits/acquire",
      from: "if found == 0 and used + weight <= capacity then",
      to: "if used + weight <= capacity then",
    },
  ),
  script(
    "permits-dead-head",
    "a waiter that is gone is dropped, whether or not it fits",
    permits([[1], [2], [1]], { crashes: 1 }),
    { script: "permits/acquire", from: "(head == self or isThere(inbox .. client, number))", to: "true" },
  ),
  script("permits-reap", "a lease that has ended releases its permits", permits([[2], [2]], { crashes: 1 }), {
    script: "permits/acquire",
    from: "if used == 0 or first - now > 0 then",
    to: "if true then",
  }),
  script("permits-release-grants", "a release grants the waiters that then fit", permits([[2], [1]], {}), {
    script: "permits/release",
    from: "grantHeads()\nreturn isHeld",
    to: "return isHeld",
  }),
  client("own-clock", "a holder checks its clock", mutex(ONE_EACH, {})),
  client("validity-from-sending", "a lease counts from before its request was sent", mutex(ONE_EACH, { delays: 2 })),
  client(
    "earliest-grant",
    "a pushed grant counts from the earliest instant at which it can have been made",
    mutex(ONE_EACH, { delays: 3 }),
  ),
  client("stale-grant", 'a grant that is older than a "wait" reply is ignored', mutex(TWO_AND_ONE, { delays: 2 })),
  client(
    "fresh-claim",
    "every attempt has its own id",
    mutex(TWO_AND_ONE, { giveUps: 1, timeouts: 1, delays: 0 }, true),
  ),
  client("recheck", "a waiter asks again from time to time", mutex(ONE_EACH, { pushes: 1 })),
  client(
    "keep-leaving",
    "a waiter repeats its leave request until none of its requests can be in flight",
    mutex([[1]], { timeouts: 1, giveUps: 1 }),
  ),
  client("leave-at-all", "a waiter that gives up tells the server", mutex(ONE_EACH, { giveUps: 1 })),
  client("sent-twice", '"not held" is not a loss if the release may have run before', mutex([[1]], { timeouts: 1 })),
];

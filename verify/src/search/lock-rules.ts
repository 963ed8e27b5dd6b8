/** The rules that the worlds of claims need: those of a mutex, of permits, and of every client. */
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
    "a lease is extended only for who holds it",
    mutex(ONE_EACH, { renewals: 1, delays: 2 }, false),
    { script: "mutex/extend", from: "if redis.call('GET', KEYS[1]) ~= owner then", to: "if false then" },
    { script: "mutex/extend", from: "if last and last - token ~= 0 then", to: "if false then" },
  ),
  script(
    "acquire-answers-again",
    "who asks again although it holds gets its grant again",
    mutex([[1]], { timeouts: 1 }),
    { script: "mutex/acquire", from: "if holder == owner then", to: "if false then" },
  ),
  script("no-barging", "who comes takes a free lock only if nobody waits", mutex([[1], [1], [1]], { delays: 2 }), {
    script: "mutex/acquire",
    from: "if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4], KEYS[5]) == 0 then",
    to: "if redis.call('EXISTS', KEYS[1]) == 0 then",
  }),
  script(
    "promotion",
    "who asks when the holder's lease is over has the head of the queue granted",
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
  script("leave-releases", "who leaves gives back what was granted meanwhile", mutex([[1]], { giveUps: 1 }), {
    script: "mutex/leave",
    from: "if redis.call('GET', KEYS[1]) == owner then",
    to: "if false then",
  }),
  script(
    "tokens-rise",
    "a token is higher than the last one, also within one microsecond",
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
    "the head of the queue is not overtaken by who needs less",
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
  script("permits-reap", "a lease that is over gives its permits back", permits([[2], [2]], { crashes: 1 }), {
    script: "permits/acquire",
    from: "if used == 0 or first - now > 0 then",
    to: "if true then",
  }),
  script("permits-release-grants", "a release grants to those who then fit", permits([[2], [1]], {}), {
    script: "permits/release",
    from: "grantHeads()\nreturn isHeld",
    to: "return isHeld",
  }),
  client("own-clock", "a holder looks at its clock", mutex(ONE_EACH, {})),
  client("validity-from-sending", "a lease counts from before its request was sent", mutex(ONE_EACH, { delays: 2 })),
  client("earliest-grant", "a pushed grant counts from when it can have been made", mutex(ONE_EACH, { delays: 3 })),
  client(
    "stale-grant",
    'a grant that is older than an answer "you wait" is not believed',
    mutex(TWO_AND_ONE, { delays: 2 }),
  ),
  client(
    "fresh-claim",
    "every attempt has an id of its own",
    mutex(TWO_AND_ONE, { giveUps: 1, timeouts: 1, delays: 0 }, true),
  ),
  client("recheck", "a waiter asks again now and then", mutex(ONE_EACH, { pushes: 1 })),
  client(
    "keep-leaving",
    "who leaves says so until nothing of it can be under way",
    mutex([[1]], { timeouts: 1, giveUps: 1 }),
  ),
  client("leave-at-all", "who gives up says so", mutex(ONE_EACH, { giveUps: 1 })),
  client("sent-twice", '"not held" is no loss if the release may have run before', mutex([[1]], { timeouts: 1 })),
];

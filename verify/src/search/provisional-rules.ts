/** The rules of provisional grants (docs/adr/130-provisional-grants.md), each with a world that needs it. */
import { mutexKind, permitsKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import { PlainWorld } from "./plain-world.js";
import { type Rule, rulesOf, type TextChange } from "./rule.js";

type More = Partial<Omit<LockSetting, "kind" | "enqueue" | "clients" | "budget">>;

/** A world with one mutex. */
export function mutex(clients: LockSetting["clients"], budget: Partial<Budget>, more: More = {}): LockSetting {
  return { kind: mutexKind, clients, enqueue: true, budget, ...more };
}

/** A world with one permit. Marks of unconfirmed grants serve the same purpose as the `handed` key of a mutex. */
export function permit(clients: LockSetting["clients"], budget: Partial<Budget>, more: More = {}): LockSetting {
  return { kind: permitsKind(1), clients, enqueue: true, budget, ...more };
}

const ONE_EACH = [[1], [1]] as const;
const TWO_AND_ONE = [[1, 1], [1]] as const;
const AT_ONCE = { delays: 0 } as const;

/** The first client has several claims at the head of the queue and may freeze. The holder's lease ends soon. */
export const FROZEN = {
  begins: "queued",
  parallel: [0],
  freezing: [0],
  confirms: "later",
  answersFirst: true,
} as const;
/** The first claim of the first client was granted by message; its other claims come later. */
export const HANDED_OVER = { begins: "handed", parallel: [0], confirms: "later", answersFirst: true } as const;
/** A client of protocol 0 with the scripts of its build, and a client of the current protocol. */
export const OLD_AND_NEW = { protocols: [0, 1] } as const;

const HAND_OFF = "local handOffMs = waiter ~= self and string.match(waiter, ';(%d+)$')";

function everywhere(scripts: readonly string[], from: string, to: string): TextChange[] {
  return scripts.map((script) => ({ script, from, to }));
}

const { script, client } = rulesOf(PlainWorld, "W8–W12");

/** The rules of provisional grants. */
export const PROVISIONAL_RULES: readonly Rule[] = [
  client(
    "hand-over-is-short",
    "the holder of a grant by message counts only the short lease",
    mutex(ONE_EACH, AT_ONCE),
  ),
  client(
    "confirmed-when-answered",
    "the holder counts its full lease once its confirmation was answered",
    mutex(ONE_EACH, { timeouts: 1, delays: 0 }, { confirms: "later", unansweredIn: "held" }),
  ),
  client(
    "refusal-is-none",
    "a waiter whose confirmation was refused continues to wait",
    mutex(ONE_EACH, { delays: 1 }, { confirms: "first" }),
  ),
  client(
    "batch-has-the-rest",
    "the next caller of a batch counts the rest of the short lease",
    mutex(ONE_EACH, { entries: 1, delays: 0 }, { hasBatches: true, confirms: "later" }),
  ),
  script(
    "length-from-the-waiter",
    "a hand-off gives a waiter of protocol 0 its full lease",
    mutex(ONE_EACH, AT_ONCE, { protocols: [1, 0] }),
    ...everywhere(["mutex/release"], HAND_OFF, "local handOffMs = '500'"),
  ),
  script(
    "hand-off-is-short",
    "a hand-off gives a short lease",
    mutex(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    ...everywhere(["mutex/acquire", "mutex/release"], "'PX', handOffMs or leaseMs", "'PX', leaseMs"),
  ),
  script(
    "hand-off-remembers",
    "a hand-off records the client in `handed`",
    mutex(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    ...everywhere(["mutex/acquire", "mutex/release"], "    if handOffMs then", "    if false then"),
  ),
  script(
    "release-forgets",
    "a release deletes `handed`",
    mutex([[1, 1], [1], [1]], AT_ONCE, { ...HANDED_OVER, protocols: [1, 0, 1] }),
    {
      script: "mutex/release",
      from: "  redis.call('DEL', KEYS[1], KEYS[4])\n  return 1",
      to: "  redis.call('DEL', KEYS[1])\n  return 1",
    },
  ),
  script(
    "whole-lease-forgets",
    "a hand-off of a full lease deletes `handed`",
    mutex([[1, 1], [1], [1]], AT_ONCE, { ...HANDED_OVER, protocols: [1, 0, 1] }),
    { script: "mutex/release", from: "else\n        redis.call('DEL', KEYS[4])", to: "else\n        local _ = client" },
  ),
  script("confirmation-forgets", "a confirmation deletes `handed`", mutex([[1, 1], [1]], AT_ONCE, HANDED_OVER), {
    script: "mutex/extend",
    from: "redis.call('DEL', KEYS[3])",
    to: "local _ = KEYS[3]",
  }),
  script(
    "answer-forgets",
    "a grant by answer deletes `handed`",
    mutex([[1, 1], [1]], { pushes: 1, delays: 0 }, { ...FROZEN, confirms: "later" }),
    { script: "mutex/acquire", from: "redis.call('DEL', KEYS[4])\n  local last", to: "local last" },
  ),
  script(
    "lose-places",
    "a client that did not confirm loses its other places",
    mutex(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    { script: "mutex/acquire", from: "local isUnconfirmed = losePlaces(inbox)\n", to: "local isUnconfirmed\n" },
  ),
  script(
    "lose-own-places-only",
    "no other client loses a place",
    mutex([[1, 1], [1], [1]], { freezes: 1, delays: 0 }, FROZEN),
    { script: "mutex/acquire", from: "if client == gone and left > 0 then", to: "if left > 0 then" },
  ),
  script(
    "tell-the-lost",
    "a client that loses a place is notified",
    mutex(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    {
      script: "mutex/acquire",
      from: "notify(inbox .. client, '~' .. number)",
      to: "local _ = number",
    },
  ),
  script(
    "promoted-by-answer-is-whole",
    "a waiter that is granted by the answer to its own request gets its full lease",
    mutex(ONE_EACH, AT_ONCE, { begins: "gone" }),
    { script: "mutex/acquire", from: HAND_OFF, to: "local handOffMs = string.match(waiter, ';(%d+)$')" },
  ),
  script(
    "asked-again-is-whole",
    "a request of a claim that was granted by message gets the full lease",
    mutex(ONE_EACH, { pushes: 1, delays: 0 }),
    {
      script: "mutex/acquire",
      from: "if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then",
      to: "if false then",
    },
  ),
  script(
    "permits-are-short",
    "a grant of permits by message gives a short lease",
    permit(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    ...everywhere(["permits/acquire", "permits/release"], "(handOffMs or leaseMs)", "leaseMs"),
  ),
  script(
    "permits-mark",
    "a grant of permits by message is marked",
    permit(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    ...everywhere(["permits/acquire", "permits/release"], "(handOffMs and '/!' or '')", "''"),
  ),
  script(
    "permits-lose-places",
    "a client whose marked grant ended loses its other places",
    permit(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    { script: "permits/acquire", from: "if string.find(grant, '/!', 1, true) then", to: "if false then" },
  ),
  script(
    "permits-extend-unmarks",
    "`extend` removes the mark of permits",
    permit([[1, 1], [1]], AT_ONCE, HANDED_OVER),
    { script: "permits/extend", from: "if string.byte(record, -1) == 33 then", to: "if false then" },
  ),
  script(
    "permits-confirm-unmarks",
    "`confirm` removes the mark of permits",
    permit([[1, 1], [1]], AT_ONCE, { begins: "gone", parallel: [0], confirms: "first" }),
    { script: "permits/confirm", from: "redis.call('HSET', KEYS[1], claim, confirmed(grant))", to: "local _ = grant" },
  ),
  script(
    "permits-answer-unmarks",
    "a grant of permits by answer removes the mark",
    permit([[1, 1], [1]], { pushes: 1, delays: 0 }, FROZEN),
    {
      script: "permits/acquire",
      from: "redis.call('HSET', KEYS[1], owner, confirmed(record))",
      to: "local _ = record",
    },
  ),
  script(
    "permits-asked-again-are-whole",
    "a request of a claim that was granted permits by message gets the full lease",
    permit(ONE_EACH, { pushes: 1, delays: 0 }),
    { script: "permits/acquire", from: "  keepLease(owner, ends)\n  local token", to: "  local token" },
  ),
  script(
    "permits-length-from-the-waiter",
    "a grant of permits by message gives a waiter of protocol 0 its full lease",
    permit(ONE_EACH, AT_ONCE, { protocols: [1, 0] }),
    { script: "permits/release", from: "string.match(head, ';(%d+)$')", to: "'500'" },
  ),
  script(
    "permits-tell-the-lost",
    "a client that loses a place in the queue of permits is notified",
    permit(TWO_AND_ONE, { freezes: 1, delays: 0 }, FROZEN),
    {
      script: "permits/acquire",
      from: "redis.call('ZREM', KEYS[5], waiter)\n        notify(inbox .. client, '~' .. number)",
      to: "redis.call('ZREM', KEYS[5], waiter)",
    },
  ),
];

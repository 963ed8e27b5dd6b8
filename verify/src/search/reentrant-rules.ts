/** The rules in the world of reentrant claims. */
import { mutexKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import { ReentrantWorld } from "./reentrant-world.js";
import { type Rule, rulesOf } from "./rule.js";

/** A world with one reentrant mutex. */
export function reentrant(
  clients: LockSetting["clients"],
  budget: Partial<Budget>,
  isSymmetric: boolean = false,
): LockSetting {
  return { kind: mutexKind, clients, enqueue: true, budget, isSymmetric };
}

const ONE_EACH = [[1], [1]] as const;
const { client } = rulesOf(ReentrantWorld, "W7");

/** The rules of a reentrant mutex. All are rules of the client, because the server sees only one hold. */
export const REENTRANT_RULES: readonly Rule[] = [
  client(
    "last-gives-back",
    "the mutex is released with the last lease",
    reentrant(ONE_EACH, { entries: 1, delays: 0 }),
  ),
  client("count-at-once", "a nested lease is counted in the same step", reentrant(ONE_EACH, { entries: 1, delays: 0 })),
  client("loss-ends-all", "a loss ends every lease of the hold", reentrant(ONE_EACH, { entries: 1, delays: 0 })),
  client(
    "no-entry-when-lost",
    "a hold that has ended cannot be entered",
    reentrant(ONE_EACH, { entries: 1, delays: 1 }),
  ),
  client("entry-keeps-token", "a nested acquire shares the hold and its token", reentrant([[1, 1]], { delays: 1 })),
  client(
    "over-with-the-last",
    "an acquire after the last lease has ended gets a separate hold",
    reentrant([[1, 1]], { delays: 0 }),
  ),
];

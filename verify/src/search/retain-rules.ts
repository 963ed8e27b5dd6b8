/** The rules in the world of retained claims. */
import { mutexKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import type { Role } from "./place.js";
import { RetainWorld } from "./retain-world.js";
import { type Rule, rulesOf, type TextChange } from "./rule.js";

const RETAIN = ["retain"] as const;
const PLAIN = ["plain"] as const;

/** A world of claims on a mutex, some of which their processes may retain. */
export function retained(
  roles: readonly (readonly Role[])[],
  budget: Partial<Budget>,
  more: Partial<LockSetting> = {},
): LockSetting {
  const clients = roles.map((of) => of.map(() => 1));
  return { kind: mutexKind, clients, roles, enqueue: true, stepUs: 100, budget: { delays: 0, ...budget }, ...more };
}

function withoutRecall(script: string): TextChange {
  const from = "local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+[13579]/')";
  return { script, from, to: "local client, number" };
}

const { script, client } = rulesOf(RetainWorld, "W14");

/** The rules of retained claims. */
export const RETAIN_RULES: readonly Rule[] = [
  script(
    "recall-by-a-waiter",
    "a script that queues recalls a claim that may be retained",
    retained([RETAIN, PLAIN], {}),
    withoutRecall("mutex/acquire"),
  ),
  script(
    "recall-by-a-try",
    "a refused try recalls it too",
    retained([RETAIN, ["try"]], {}),
    withoutRecall("mutex/acquire"),
  ),
  script(
    "recall-by-a-pause",
    "a pause recalls it too",
    retained([RETAIN, ["pause"]], {}),
    withoutRecall("pausing/pause"),
  ),
  client("recall-gives-back", "a kept claim that is recalled is released", retained([RETAIN, PLAIN], {})),
  client("recall-in-use", "a claim that is recalled while it is in use is not kept", retained([RETAIN, PLAIN], {})),
  client(
    "recalled-is-over",
    "no caller of the process takes a claim after its recall",
    retained([RETAIN, PLAIN], { entries: 1 }),
  ),
  client(
    "reuse-by-the-clock",
    "a kept claim is reused only if enough of its lease is left",
    retained([RETAIN, PLAIN], { entries: 1, freezes: 1 }),
  ),
  client(
    "asked-once",
    "a claim is kept only if the answer to its only request granted it",
    retained([RETAIN, PLAIN], {}, { begins: "queued" }),
  ),
];

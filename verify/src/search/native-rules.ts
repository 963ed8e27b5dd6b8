/** The rules in the world of native releases. */
import { mutexKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import type { Budget } from "./lock-state.js";
import { NativeWorld } from "./native-world.js";
import { type Rule, rulesOf } from "./rule.js";

/** Claims on a mutex that are released natively. */
export function native(
  clients: LockSetting["clients"],
  budget: Partial<Budget>,
  more: Partial<LockSetting> = {},
): LockSetting {
  return { kind: mutexKind, clients, enqueue: true, budget: { delays: 0, ...budget }, ...more };
}

const { script, client } = rulesOf(NativeWorld, "W15");
const TWO = [[1], [1]] as const;

/** The rules of native releases. */
export const NATIVE_RULES: readonly Rule[] = [
  client(
    "look-after-delete",
    "a native release that finds a waiter is followed by the release script",
    native(TWO, {}),
  ),
  client("delete-before-look", "a native release deletes the lock before it looks for waiters", native(TWO, {})),
  script(
    "freed-is-handed-on",
    "the release script hands on a lock that is free if the client may have deleted it",
    native(TWO, {}),
    { script: "mutex/release", from: "freed == '1' and", to: "false and" },
  ),
];

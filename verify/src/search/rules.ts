/**
 * The rules of the protocol. Each can be switched off; a search that then finds no violation does not test the rule.
 *
 * A rule of the server is a part of a script. A text change that must match exactly once switches it off. A rule of the
 * client is a branch of the client in the world.
 */
import { CONDITION_RULES } from "./condition-rules.js";
import { LENGTHS_RULES } from "./lengths-rules.js";
import { LOCK_RULES } from "./lock-rules.js";
import { NATIVE_RULES } from "./native-rules.js";
import type { ScriptTexts } from "./production-scripts.js";
import { PROVISIONAL_RULES } from "./provisional-rules.js";
import { READ_WRITE_RULES } from "./read-write-rules.js";
import { REENTRANT_RULES } from "./reentrant-rules.js";
import { RETAIN_RULES } from "./retain-rules.js";
import { changedTexts, type Rule } from "./rule.js";
import { STEAL_RULES } from "./steal-rules.js";
import { TIMED_RULES } from "./timed-rules.js";
import { TOKEN_RULES } from "./token-rules.js";

/** All rules. */
export const RULES: readonly Rule[] = [
  ...LOCK_RULES,
  ...PROVISIONAL_RULES,
  ...CONDITION_RULES,
  ...READ_WRITE_RULES,
  ...STEAL_RULES,
  ...RETAIN_RULES,
  ...NATIVE_RULES,
  ...REENTRANT_RULES,
  ...TOKEN_RULES,
  ...TIMED_RULES,
  ...LENGTHS_RULES,
];

/** The scripts with the changes of one rule. @throws Error  a change does not match exactly once */
export function changed(texts: ScriptTexts, rule: Rule): ScriptTexts {
  try {
    return changedTexts(texts, rule.changes);
  } catch (error) {
    throw new Error(`${rule.id}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

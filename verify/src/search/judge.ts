/** Searches one world, or one world without one rule. */
import { type Explored, explore } from "./explore.js";
import { productionScripts, type ScriptTexts } from "./production-scripts.js";
import type { Rule } from "./rule.js";
import { changed } from "./rules.js";
import { Server } from "./server.js";
import type { Bound, Setting } from "./worlds.js";

/** Enough for each missing rule to be missed. */
export const RULE_STATES = 600_000;

let texts: Promise<ScriptTexts> | undefined;

/** The scripts, found out once. */
function scripts(): Promise<ScriptTexts> {
  texts ??= productionScripts();
  return texts;
}

/** Searches a world with all its rules. */
export async function searchWorld(setting: Setting, bound: Bound, maxStates: number): Promise<Explored> {
  return explore(setting.world(bound, new Server(await scripts())), maxStates);
}

/** Searches for what goes wrong without `rule`. */
export async function searchWithout(rule: Rule, maxStates: number = RULE_STATES): Promise<Explored> {
  const server = new Server(changed(await scripts(), rule));
  return explore(rule.search(server, true), maxStates);
}

/** Searches the same world with the rule. */
export async function searchWith(rule: Rule, maxStates: number): Promise<Explored> {
  return explore(rule.search(new Server(await scripts()), false), maxStates);
}

/** Searches a world with all rules, or without one of them. */
import { type Explored, explore } from "./explore.js";
import { productionScripts, type ScriptTexts } from "./production-scripts.js";
import type { Rule } from "./rule.js";
import { changed } from "./rules.js";
import { Server } from "./server.js";
import type { Bound, Setting } from "./worlds.js";

/** Enough states to find a violation for each missing rule. */
export const RULE_STATES = 600_000;

let texts: Promise<ScriptTexts> | undefined;

/** The production scripts, read once. */
function scripts(): Promise<ScriptTexts> {
  texts ??= productionScripts();
  return texts;
}

/** Searches a world with all its rules. */
export async function searchWorld(setting: Setting, bound: Bound, maxStates: number): Promise<Explored> {
  return explore(setting.world(bound, new Server(await scripts())), maxStates);
}

/** Searches for a violation without `rule`. */
export async function searchWithout(rule: Rule, maxStates: number = RULE_STATES): Promise<Explored> {
  const server = new Server(changed(await scripts(), rule));
  return explore(rule.search(server, true), maxStates);
}

/** Searches the world of `rule` with all rules. */
export async function searchWith(rule: Rule, maxStates: number): Promise<Explored> {
  return explore(rule.search(new Server(await scripts()), false), maxStates);
}

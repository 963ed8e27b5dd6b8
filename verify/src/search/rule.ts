import { asSent } from "../as-sent.js";
import type { World } from "./explore.js";
import type { LockSetting } from "./lock-setting.js";
import type { ClientRule, LockState } from "./lock-state.js";
import type { Server } from "./server.js";

/** A change of a script. */
export interface TextChange {
  readonly script: string;
  /** Text that occurs exactly once in the script. Indented as in the .lua file: scripts are sent without indentation. */
  readonly from: string;
  readonly to: string;
}

/** Applies the changes to the scripts. @throws Error  a change does not match exactly once */
export function changedTexts(
  texts: ReadonlyMap<string, string>,
  changes: readonly TextChange[],
): ReadonlyMap<string, string> {
  const changed = new Map(texts);
  for (const { script, from, to } of changes) {
    const parts = (changed.get(script) ?? "").split(asSent(from));
    if (parts.length !== 2) throw new Error(`a change matches ${parts.length - 1} times in ${script}: ${from}`);
    changed.set(script, parts.join(to));
  }
  return changed;
}

/** Creates a world of one kind; `Off` are the client's rules that can be switched off in it. */
export type MakeWorld<Setting = LockSetting, State = LockState, Off = ClientRule> = new (
  setting: Setting,
  server: Server,
  off: readonly Off[],
) => World<State>;

/** A rule and the world that needs it. */
export interface Rule {
  readonly id: string;
  readonly what: string;
  readonly where: "script" | "client";
  /** The id of its world. */
  readonly world: string;
  readonly changes: readonly TextChange[];
  /** Whether removing the rule removes a branch of the client in the world, not a part of a script. */
  readonly isOfClient: boolean;
  /** Creates the world. If `isOff`, a rule of the client is switched off in it. */
  search(server: Server, isOff: boolean): World<unknown>;
}

/** Functions that create the rules of one world. */
export function rulesOf<Setting, State, Off extends string>(
  make: MakeWorld<Setting, State, Off>,
  world: string,
): {
  /** Creates a rule of the server. */
  script(id: string, what: string, setting: Setting, ...changes: readonly TextChange[]): Rule;
  /** Creates a rule of the client. */
  client(id: Off, what: string, setting: Setting): Rule;
} {
  return {
    script: (id, what, setting, ...changes) => ({
      id,
      what,
      where: "script",
      world,
      changes,
      isOfClient: false,
      search: (server) => new make(setting, server, []),
    }),
    client: (id, what, setting) => ({
      id,
      what,
      where: "client",
      world,
      changes: [],
      isOfClient: true,
      search: (server, isOff) => new make(setting, server, isOff ? [id] : []),
    }),
  };
}

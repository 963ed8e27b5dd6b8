import type { World } from "./explore.js";
import type { LockSetting } from "./lock-setting.js";
import type { ClientRule, LockState } from "./lock-state.js";
import type { Server } from "./server.js";

/** How a script is changed. */
export interface TextChange {
  readonly script: string;
  /** Stands exactly once in the script. */
  readonly from: string;
  readonly to: string;
}

/** The scripts, changed. @throws Error  a change does not fit exactly once */
export function changedTexts(
  texts: ReadonlyMap<string, string>,
  changes: readonly TextChange[],
): ReadonlyMap<string, string> {
  const changed = new Map(texts);
  for (const { script, from, to } of changes) {
    const parts = (changed.get(script) ?? "").split(from);
    if (parts.length !== 2) throw new Error(`a change fits ${parts.length - 1} times into ${script}: ${from}`);
    changed.set(script, parts.join(to));
  }
  return changed;
}

/** Makes a world of one kind; `Off` are the rules of the client that may be switched off in it. */
export type MakeWorld<Setting = LockSetting, State = LockState, Off = ClientRule> = new (
  setting: Setting,
  server: Server,
  off: readonly Off[],
) => World<State>;

/** One rule, and the world in which it is missed. */
export interface Rule {
  readonly id: string;
  readonly what: string;
  readonly where: "script" | "client";
  /** Id of the world that it is a rule of. */
  readonly world: string;
  readonly changes: readonly TextChange[];
  /** Whether a branch of the client in the world is what has to go. */
  readonly isOfClient: boolean;
  /** The world, with the rule or, if that is a rule of the client, without it. */
  search(server: Server, isOff: boolean): World<unknown>;
}

/** Makes the rules of one world. */
export function rulesOf<Setting, State, Off extends string>(
  make: MakeWorld<Setting, State, Off>,
  world: string,
): {
  /** A rule of the server. */
  script(id: string, what: string, setting: Setting, ...changes: readonly TextChange[]): Rule;
  /** A rule of the client. */
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

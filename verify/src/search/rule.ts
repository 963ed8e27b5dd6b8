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

/** Makes a world of one kind. */
export type MakeWorld = new (setting: LockSetting, server: Server, off: readonly ClientRule[]) => World<LockState>;

/** One rule, and the world in which it is missed. */
export interface Rule {
  readonly id: string;
  readonly what: string;
  readonly where: "script" | "client";
  /** Id of the world that it is a rule of. */
  readonly world: string;
  readonly changes: readonly TextChange[];
  readonly off: readonly ClientRule[];
  readonly setting: LockSetting;
  readonly make: MakeWorld;
}

/** Makes the rules of one world. */
export function rulesOf(
  make: MakeWorld,
  world: string,
): {
  /** A rule of the server. */
  script(id: string, what: string, setting: LockSetting, ...changes: readonly TextChange[]): Rule;
  /** A rule of the client. */
  client(id: ClientRule, what: string, setting: LockSetting): Rule;
} {
  return {
    script: (id, what, setting, ...changes) => ({
      id,
      what,
      where: "script",
      world,
      changes,
      off: [],
      setting,
      make,
    }),
    client: (id, what, setting) => ({ id, what, where: "client", world, changes: [], off: [id], setting, make }),
  };
}

import { LockClients } from "./lock-client.js";
import type { LockSetting } from "./lock-setting.js";
import type { ClientRule } from "./lock-state.js";
import { LockWorld } from "./lock-world.js";
import type { Server } from "./server.js";

/** A world of claims that only acquire, hold, renew and release. */
export class PlainWorld extends LockWorld {
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    super(setting, server, off, (places, rules) => new LockClients(places, rules));
  }
}

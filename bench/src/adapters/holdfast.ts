import { createHoldfast } from "holdfast";
import { versionOf } from "../machine.js";
import type { Adapter } from "./adapter.js";
import { newClient } from "./client.js";

/** The mutex of this repository, as a user has it: default lease, renewal, fencing token and queue. */
export const holdfast: Adapter = {
  name: "holdfast",
  version: versionOf("holdfast"),
  commands: ["evalsha"],

  async open(connection) {
    const client = newClient(connection);
    const locks = createHoldfast({ redis: client, waitMs: Infinity });
    return {
      acquire: (name) => locks.mutex(name).acquire(),
      async close() {
        await locks.close();
        await client.quit();
      },
    };
  },
};

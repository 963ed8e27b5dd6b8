/** Runs a script on every server of a cluster. */
import { StoreError } from "../core/errors.js";
import type { Store } from "../core/store.js";
import { failureOf, missingPermission } from "./failure.js";
import { type ScriptClient, toReply } from "./script-runner.js";
import { within } from "./timeout.js";

/**
 * An `attempt` number that makes a cluster client load a script on all servers, not only on the server that has a key.
 */
const TO_ALL = 2;

/** Implements `Store.runOnEach`. Each call loads the script again, because such calls are rare. */
export function onEach(client: ScriptClient): NonNullable<Store["runOnEach"]> {
  return async (script, args, timeoutMs) => {
    const ask = async (): Promise<readonly unknown[]> => {
      // This call only makes the client discover its servers, so its result does not matter.
      await client.evalsha(script.sha1, [], args).catch(() => {});
      await client.load(script.source, [], TO_ALL);
      return client.evalshaOnEach?.(script.sha1, args, timeoutMs / 2) ?? [];
    };
    try {
      return (await within(timeoutMs, ask())).map(toReply);
    } catch (cause) {
      const missing = missingPermission(cause, script);
      throw new StoreError(script.name, { ...failureOf(cause, false, true), missingPermission: missing });
    }
  };
}

/**
 * What the proxy saw, for judges: when each request and its reply passed, and what was in them.
 *
 * Success out of ambiguity is decided from this: a client that says that it was granted something must have been
 * given the words of it before. All instants are on the recorder's clock.
 */

import { createHash } from "node:crypto";
import type { RespValue } from "./resp.js";

/** One request with its reply, or one message of pub/sub, which has no request. */
export interface Exchange {
  readonly sort: "request" | "message";
  /** Rises with each connection. */
  readonly connection: number;
  /** The request as scripts are named, e.g. `EVALSHA mutex/acquire 3 hf:mutex:{a} …`; of a message, its channel and text. */
  readonly words: readonly string[];
  /** When the whole request had arrived. For a message, when the server had sent it. */
  readonly receivedMs: number;
  /** When it was passed on to the server; absent if it never was. The last time, of a request passed on twice. */
  forwardedMs?: number;
  /** When the server's reply was here; absent if it never came. */
  repliedMs?: number;
  /** When the reply or message was delivered to the client. Absent if it never was. */
  deliveredMs?: number;
  /** Present with `repliedMs`. Of a request that was answered here, what was made up. */
  reply?: RespValue;
}

/** Commands that no judge asks about, and that come by the thousand. */
const DULL = new Set(["PING", "HELLO", "CLIENT", "INFO", "AUTH", "SELECT", "COMMAND"]);

/** Whether a judge may ask about it. */
export function isTelling(words: readonly string[]): boolean {
  return !DULL.has((words[0] ?? "").toUpperCase());
}

/**
 * Knows scripts by name, from the first line of their text: `-- holdfast mutex/acquire`.
 *
 * A script without such a line is called by the first 8 digits of its hash.
 */
export class ScriptNames {
  readonly #byHash = new Map<string, string>();

  /** The words of a request with script bodies and hashes as names; learns from SCRIPT LOAD and EVAL. */
  named(words: readonly string[]): readonly string[] {
    const [command = "", second = "", third = ""] = words;
    switch (command.toUpperCase()) {
      case "EVALSHA":
      case "EVALSHA_RO":
        return [command, this.#byHash.get(second.toLowerCase()) ?? second.slice(0, 8), ...words.slice(2)];
      case "EVAL":
      case "EVAL_RO":
        return [command, this.#learn(second), ...words.slice(2)];
      case "SCRIPT":
        return second.toUpperCase() === "LOAD" ? [command, second, this.#learn(third)] : words;
      default:
        return words;
    }
  }

  #learn(source: string): string {
    const hash = createHash("sha1").update(source).digest("hex");
    const name = /^-- holdfast (\S+)/.exec(source)?.[1] ?? hash.slice(0, 8);
    this.#byHash.set(hash, name);
    return name;
  }
}

/**
 * What the proxy has seen, for the judges: the times and contents of each request and its reply.
 *
 * It shows whether a reported success was based on a reply: a client that reports a grant must have received one
 * before. All instants are on the recorder's clock.
 */

import { createHash } from "node:crypto";
import type { RespValue } from "./resp.js";

/** A request with its reply, or a pub/sub message, which has no request. */
export interface Exchange {
  readonly sort: "request" | "message";
  /** Increases with each connection. */
  readonly connection: number;
  /**
   * The request with script names, such as `EVALSHA mutex/acquire 3 hf:mutex:{a} …`; for a message, its channel and
   * text.
   */
  readonly words: readonly string[];
  /** When the whole request had arrived; for a message, when the server had sent it. */
  readonly receivedMs: number;
  /** When it was forwarded to the server; absent if never. For a request forwarded twice, the last time. */
  forwardedMs?: number;
  /** When the server's reply arrived; absent if never. */
  repliedMs?: number;
  /** When the reply or message was delivered to the client. Absent if it never was. */
  deliveredMs?: number;
  /** Present with `repliedMs`. For a request that the proxy answered, the forged reply. */
  reply?: RespValue;
}

/** Frequent commands that are irrelevant for judges. */
const DULL = new Set(["PING", "HELLO", "CLIENT", "INFO", "AUTH", "SELECT", "COMMAND"]);

/** Whether the exchange is relevant for a judge. */
export function isTelling(words: readonly string[]): boolean {
  return !DULL.has((words[0] ?? "").toUpperCase());
}

/**
 * Names scripts by the first line of their text: `-- holdfast mutex/acquire`.
 *
 * A script without such a line is named by the first 8 digits of its hash.
 */
export class ScriptNames {
  readonly #byHash = new Map<string, string>();

  /** The words of a request with script names instead of bodies and hashes; learns from SCRIPT LOAD and EVAL. */
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

/** Text changes in production scripts, for deliberate mistakes. */
import { createHash } from "node:crypto";
import type { Script } from "holdfast";
import { asSent } from "../as-sent.js";

/** A deliberate mistake could not be made. This error ends the run, because such a run shows nothing. */
export class TamperingError extends Error {
  override readonly name = "TamperingError";
}

/** A part of a script's text, indented as in the .lua file, and its replacement. */
export type Change = readonly [part: string, by: string];

/**
 * Replaces all occurrences of the parts in a script's text. @throws TamperingError  the text does not contain a part
 */
export function rewritten(script: Script, changes: readonly Change[]): Script {
  let { source } = script;
  for (const [written, by] of changes) {
    const part = asSent(written);
    if (!source.includes(part)) throw new TamperingError(`${script.name} has no ${JSON.stringify(part)}`);
    // A function, because a replacement text may contain a "$" with a special meaning.
    source = source.replaceAll(part, () => by);
  }
  return { ...script, source, sha1: createHash("sha1").update(source).digest("hex") };
}

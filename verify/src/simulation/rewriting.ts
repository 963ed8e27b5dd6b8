/** Changes in the text of production scripts, for mistakes on purpose. */
import { createHash } from "node:crypto";
import type { Script } from "holdfast";

/** A mistake on purpose could not be made; that says nothing about what is simulated, and ends the run. */
export class TamperingError extends Error {
  override readonly name = "TamperingError";
}

/** A part of a script's text, and what stands there instead. */
export type Change = readonly [part: string, by: string];

/** The script with parts of its text replaced, every occurrence. @throws TamperingError  a part is not in it */
export function rewritten(script: Script, changes: readonly Change[]): Script {
  let { source } = script;
  for (const [part, by] of changes) {
    if (!source.includes(part)) throw new TamperingError(`${script.name} has no ${JSON.stringify(part)}`);
    // As a function, since a text may have a "$" in it that means something else.
    source = source.replaceAll(part, () => by);
  }
  return { ...script, source, sha1: createHash("sha1").update(source).digest("hex") };
}

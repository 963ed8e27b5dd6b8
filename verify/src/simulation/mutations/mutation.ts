/** A mistake on purpose, and how one is made in a script. */
import type { Script } from "holdfast";
import type { Profile } from "../plan.js";
import { type Change, rewritten } from "../rewriting.js";
import type { Tampering } from "../tampering.js";

/** One mistake. */
export interface Mutation {
  readonly name: string;
  /** The first seed that finds it, as far as is known: a search may begin here. */
  readonly seed: number;
  /** The bug that it restates, if it is one of the table in the reference. */
  readonly bug: string;
  readonly kind: string;
  /** Properties of which one is violated. */
  readonly finds: readonly string[];
  readonly tampering: Tampering;
  /** Which faults it is looked for with; "promised" if absent. */
  readonly profile?: Profile;
  /** Whether it is looked for in runs in which processes are killed and nothing else goes wrong. */
  readonly onlyKills?: true;
}

/** The script with a part of its text replaced. @throws TamperingError  the part is not in it */
export function rewrite(name: string, ...changes: readonly Change[]): Tampering {
  return { script: (script: Script) => (script.name === name ? rewritten(script, changes) : script) };
}

/** Every script in which those parts stand, with them replaced: for what several scripts have in common. */
export function rewriteAll(...changes: readonly Change[]): Tampering {
  const isMeant = ({ source }: Script): boolean => changes.every(([part]) => source.includes(part));
  return { script: (script: Script) => (isMeant(script) ? rewritten(script, changes) : script) };
}

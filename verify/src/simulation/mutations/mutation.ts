/** Deliberate mistakes, and helpers to make them in scripts. */
import type { Script } from "holdfast";
import { asSent } from "../../as-sent.js";
import type { Profile } from "../plan.js";
import { type Change, rewritten } from "../rewriting.js";
import type { Tampering } from "../tampering.js";

/** A mistake. */
export interface Mutation {
  readonly name: string;
  /** The first known seed that finds it, where the search may begin. */
  readonly seed: number;
  /** The bug in the reference's table that it reproduces, if any. */
  readonly bug: string;
  readonly kind: string;
  /** Properties, of which at least one is violated. */
  readonly finds: readonly string[];
  readonly tampering: Tampering;
  /** The faults with which it is searched; "promised" if absent. */
  readonly profile?: Profile;
  /** Whether it is searched in runs with kills only. */
  readonly onlyKills?: true;
}

/** Replaces a part of a script's text. @throws TamperingError  the text does not contain the part */
export function rewrite(name: string, ...changes: readonly Change[]): Tampering {
  return { script: (script: Script) => (script.name === name ? rewritten(script, changes) : script) };
}

/** Replaces those parts in every script that contains them. */
export function rewriteAll(...changes: readonly Change[]): Tampering {
  const isMeant = ({ source }: Script): boolean => changes.every(([part]) => source.includes(asSent(part)));
  return { script: (script: Script) => (isMeant(script) ? rewritten(script, changes) : script) };
}

/** A tooth: a mistake of another library, reproduced in Holdfast's code, and the check that must catch it. */
import type { Choice } from "../simulation/choose.js";

/** A change of one source file in a workbench's copy. */
export interface Patch {
  /** Path from the root of the repository. Scripts are rebuilt after a change of a `.lua` file. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly from: string;
  readonly to: string;
}

/** Simulated runs of consecutive seeds, until one of the properties is violated. */
export interface BySimulation {
  readonly by: "simulation";
  readonly kind: string;
  readonly profile: Choice;
  /** Ids of properties, one of which must be violated. */
  readonly finds: readonly string[];
}

/** A search of the world of a rule, without the rule. */
export interface BySearch {
  readonly by: "search";
  /** The id of the rule to switch off. */
  readonly rule: string;
  /** The beginning of the expected finding. */
  readonly finds: string;
}

/** A test of the library that must fail. */
export interface ByTest {
  readonly by: "test";
  /** Path from `packages/holdfast/tests`. */
  readonly file: string;
  /** The full name of the test, or the end of it. */
  readonly test: string;
}

/** The check that must catch the mistake. */
export type Catcher = BySimulation | BySearch | ByTest;

/** One mistake. */
export interface Tooth {
  /** A unique kebab-case id for what is missing. */
  readonly id: string;
  /** Bugs of the reference that it reproduces; empty for a mistake without a public source. */
  readonly bugs: readonly string[];
  /** The mistake, in one clause. */
  readonly mistake: string;
  /** Changes of the source; empty if the mistake is a tampering or the rule of a search. */
  readonly patches: readonly Patch[];
  /** The name of a deliberate mistake in the simulation or in tampering.ts. */
  readonly tampering?: string;
  readonly catcher: Catcher;
}

const LIBRARY = "packages/holdfast/src/";

/** Creates a change of a library file. */
export function patch(file: string, from: string, to: string): Patch {
  return { file: LIBRARY + file, from, to };
}

/** A simulation of a kind that must violate one of these properties. */
export function simulation(kind: string, ...finds: readonly string[]): BySimulation {
  return { by: "simulation", kind, profile: "promised", finds };
}

/** A test in `packages/holdfast/tests`, by its full name or the end of it. */
export function test(file: string, name: string): ByTest {
  return { by: "test", file, test: name };
}

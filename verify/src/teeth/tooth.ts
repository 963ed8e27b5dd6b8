/** A tooth: a mistake that another library has made, repeated in our code, and the check that must notice it. */
import type { Choice } from "../simulation/choose.js";

/** A change of one source file of the library, in the copy that a workbench has. */
export interface Patch {
  /** From the root of the repository. After a change of a `.lua` file, the scripts are built again. */
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly from: string;
  readonly to: string;
}

/** Simulated runs, one seed after the other, until one of the properties is violated. */
export interface BySimulation {
  readonly by: "simulation";
  readonly kind: string;
  readonly profile: Choice;
  /** Ids of properties of which one must be violated. */
  readonly finds: readonly string[];
}

/** The search of the world in which a rule of the protocol is missed. */
export interface BySearch {
  readonly by: "search";
  /** Id of the rule, which is what is switched off. */
  readonly rule: string;
  /** How what is found begins. */
  readonly finds: string;
}

/** A test of the library, which must fail. */
export interface ByTest {
  readonly by: "test";
  /** From `packages/holdfast/tests`. */
  readonly file: string;
  /** Its full name, or the end of it. */
  readonly test: string;
}

/** Who must notice. */
export type Catcher = BySimulation | BySearch | ByTest;

/** One mistake. */
export interface Tooth {
  /** Unique, in kebab-case: what is lacking. */
  readonly id: string;
  /** Bugs of the reference that it restates; empty for a mistake without a public ancestor. */
  readonly bugs: readonly string[];
  /** What is wrong, in one clause. */
  readonly mistake: string;
  /** Changes of the source; none where the mistake is a tampering of that name, or the rule of a search. */
  readonly patches: readonly Patch[];
  /** Name of a mistake on purpose that the simulation itself, or tampering.ts, can make. */
  readonly tampering?: string;
  readonly catcher: Catcher;
}

const LIBRARY = "packages/holdfast/src/";

/** A change of a file of the library. */
export function patch(file: string, from: string, to: string): Patch {
  return { file: LIBRARY + file, from, to };
}

/** A simulation of a kind that must violate one of these properties. */
export function simulation(kind: string, ...finds: readonly string[]): BySimulation {
  return { by: "simulation", kind, profile: "promised", finds };
}

/** The test of that name, or of that end of a name, in a file of `packages/holdfast/tests`. */
export function test(file: string, name: string): ByTest {
  return { by: "test", file, test: name };
}

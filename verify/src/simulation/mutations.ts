/**
 * Mistakes on purpose in the production scripts and in what the session uses, each of which the simulation must
 * find. A mutation that does not apply any more fails the test: then the code has moved on, and so must this list.
 */
import { CLIENTS } from "./mutations/clients.js";
import { HAND_OFFS } from "./mutations/hand-offs.js";
import type { Mutation } from "./mutations/mutation.js";
import { MUTEX_SCRIPTS } from "./mutations/mutex-scripts.js";
import { OTHER_SCRIPTS } from "./mutations/other-scripts.js";

/** All of them. */
export const MUTATIONS: readonly Mutation[] = [...MUTEX_SCRIPTS, ...OTHER_SCRIPTS, ...HAND_OFFS, ...CLIENTS];

/**
 * Deliberate mistakes in the production scripts and in the session's dependencies, each of which the simulation must
 * find. A mutation that no longer applies fails the test, because the code has changed and the list must follow.
 */
import { CLIENTS } from "./mutations/clients.js";
import { HAND_OFFS } from "./mutations/hand-offs.js";
import type { Mutation } from "./mutations/mutation.js";
import { MUTEX_SCRIPTS } from "./mutations/mutex-scripts.js";
import { OTHER_SCRIPTS } from "./mutations/other-scripts.js";

/** All mutations. */
export const MUTATIONS: readonly Mutation[] = [...MUTEX_SCRIPTS, ...OTHER_SCRIPTS, ...HAND_OFFS, ...CLIENTS];

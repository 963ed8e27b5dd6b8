import type { Adapter } from "./adapter.js";
import { holdfast } from "./holdfast.js";
import { raw } from "./raw.js";

/** Every contestant, the yardstick first. */
export const ADAPTERS: readonly Adapter[] = [raw, holdfast];

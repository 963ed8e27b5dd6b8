/**
 * All teeth. To add one, add an entry to a file in mistakes/; mistakes that cannot be caught yet do not belong here.
 */
import { ACQUIRING } from "./mistakes/acquiring.js";
import { CLIENTS } from "./mistakes/clients.js";
import { COUNTING } from "./mistakes/counting.js";
import { ENDING } from "./mistakes/ending.js";
import { HANDING_OVER } from "./mistakes/handing-over.js";
import { HOLDING } from "./mistakes/holding.js";
import { PERMITS } from "./mistakes/permits.js";
import { QUORUM } from "./mistakes/quorum.js";
import { RETAINING } from "./mistakes/retaining.js";
import { SHARING } from "./mistakes/sharing.js";
import { STEALING } from "./mistakes/stealing.js";
import { TOKENS } from "./mistakes/tokens.js";
import { WAITING } from "./mistakes/waiting.js";
import type { Tooth } from "./tooth.js";

/** In the order of a caller's operations. */
export const TEETH: readonly Tooth[] = [
  ...ACQUIRING,
  ...WAITING,
  ...SHARING,
  ...RETAINING,
  ...HANDING_OVER,
  ...HOLDING,
  ...ENDING,
  ...STEALING,
  ...PERMITS,
  ...COUNTING,
  ...TOKENS,
  ...CLIENTS,
  ...QUORUM,
];

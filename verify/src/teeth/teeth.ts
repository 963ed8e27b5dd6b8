/** All teeth. A new one is an entry in a file of mistakes/; what cannot be caught yet does not belong here. */
import { ACQUIRING } from "./mistakes/acquiring.js";
import { CLIENTS } from "./mistakes/clients.js";
import { COUNTING } from "./mistakes/counting.js";
import { ENDING } from "./mistakes/ending.js";
import { HANDING_OVER } from "./mistakes/handing-over.js";
import { HOLDING } from "./mistakes/holding.js";
import { PERMITS } from "./mistakes/permits.js";
import { QUORUM } from "./mistakes/quorum.js";
import { SHARING } from "./mistakes/sharing.js";
import { STEALING } from "./mistakes/stealing.js";
import { TOKENS } from "./mistakes/tokens.js";
import { WAITING } from "./mistakes/waiting.js";
import type { Tooth } from "./tooth.js";

/** In the order of what a caller does. */
export const TEETH: readonly Tooth[] = [
  ...ACQUIRING,
  ...WAITING,
  ...SHARING,
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

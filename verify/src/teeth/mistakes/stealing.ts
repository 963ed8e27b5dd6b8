/** Mistakes of `holdfast/web-locks`: steals, and the order of the requests of one process. */
import { patch, type Tooth, test } from "../tooth.js";

/** See the file header. */
export const STEALING: readonly Tooth[] = [
  {
    id: "steal-leaves-a-holder",
    bugs: [],
    mistake: "a steal leaves a former holder beside the new one",
    patches: [],
    catcher: { by: "search", rule: "steal-ends-all", finds: "X2" },
  },
  {
    id: "late-steal",
    bugs: [],
    mistake: "a late copy of a steal ends the holds that came after it",
    patches: [],
    catcher: { by: "search", rule: "steal-once", finds: "a late steal" },
  },
  {
    id: "requests-overtake",
    bugs: [],
    mistake: "requests of one process for a name are sent together, and may overtake each other",
    patches: [patch("web-locks/line.ts", "return this.#sent.size === 0 || (", "return this.#sent.size >= 0 || (")],
    catcher: test(
      "web-locks/steal.test.ts",
      "a line sends a request when all before it have their place, and shared ones in a row together",
    ),
  },
];

/** Mistakes in `holdfast/web-locks`: steals, and the order of requests of one process. */
import { type BySimulation, patch, simulation, type Tooth, test } from "../tooth.js";

/** Runs of read-write locks in which some callers steal. */
function steals(...finds: readonly string[]): BySimulation {
  return { ...simulation("read-write-lock", ...finds), profile: "steals" };
}

/** Teeth for steals. */
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
    id: "steal-ends-one-of-several",
    bugs: [],
    mistake: "a steal ends the hold of one of several readers",
    patches: [
      patch(
        "web-locks/steal.lua",
        "begin(capacity, state[2] or ',' .. weight .. ',')\n",
        "local one = redis.call('HGET', KEYS[1], ended[1])\nif one then\n  giveBack(ended[1], one)\nend\n",
      ),
    ],
    catcher: steals("X2"),
  },
  {
    id: "steal-after-the-head",
    bugs: [],
    mistake: "a steal is granted after the head of the queue",
    patches: [patch("web-locks/steal.lua", "local token = nextToken()\n", "grantHeads()\nlocal token = nextToken()\n")],
    catcher: steals("X3"),
  },
  {
    id: "steal-with-the-last-token",
    bugs: [],
    mistake: "a steal gets the token of the hold that it ends",
    patches: [
      patch(
        "web-locks/steal.lua",
        "local token = nextToken()\n",
        "local token = math.max(1, tonumber(redis.call('GET', KEYS[2]) or 0))\n",
      ),
    ],
    catcher: steals("F2"),
  },
  {
    id: "steal-notifies-one",
    bugs: [],
    mistake: "a steal notifies one of several former holders",
    patches: [
      patch("web-locks/steal.lua", "redis.call('ZRANGE', KEYS[3], 0, 9999)", "redis.call('ZRANGE', KEYS[3], 0, 0)"),
    ],
    catcher: steals("S4"),
  },
  {
    id: "request-outlives-its-lock",
    bugs: [],
    mistake: "a request whose lock is stolen settles when its callback does",
    patches: [
      patch(
        "web-locks/lock-manager.ts",
        'if (reason !== "closing") reject(lossOf(lease, { isRunning }));',
        "void reason;",
      ),
    ],
    catcher: steals("S4"),
  },
  {
    id: "requests-overtake",
    bugs: [],
    mistake: "requests of one process for a name are sent together, and may overtake each other",
    patches: [patch("web-locks/line.ts", "return this.#sent.size === 0 || (", "return this.#sent.size >= 0 || (")],
    catcher: test(
      "web-locks/steal.test.ts",
      "the line of a process's requests sends a request once all before it have their places, and consecutive shared requests together",
    ),
  },
];

/** Mistakes in latches and barriers: what counts, and which callers are notified. */
import { type BySimulation, patch, type Tooth, test } from "../tooth.js";

/** A simulation without faults, so that only the library can cause delays. */
function withoutFaults(kind: string): BySimulation {
  return { by: "simulation", kind, profile: "none", finds: ["L2"] };
}

/** Teeth for latches and barriers. */
export const COUNTING: readonly Tooth[] = [
  {
    id: "count-down-counts-twice",
    bugs: [],
    mistake: "a resent count-down counts again",
    patches: [
      patch(
        "count-down-latch/count-down-latch.ts",
        "    const request = `/${this.#session.newRequestId(this.name)}`;\n    const caller",
        "    const newRequest = (): string => `/${this.#session.newRequestId(this.name)}`;\n    const caller",
      ),
      patch(
        "count-down-latch/count-down-latch.ts",
        "this.#protocol.countDown(request, caller,",
        "this.#protocol.countDown(newRequest(), caller,",
      ),
    ],
    catcher: test("regressions/count-down-sent-again.test.ts", "a count-down that is resent counts once: anonymous"),
  },
  {
    id: "zero-tells-the-first",
    bugs: [],
    mistake: "a count that reaches zero notifies only the first waiter",
    patches: [patch("count-down-latch/count-down.lua", "ZRANGE', KEYS[3], 0, 9999", "ZRANGE', KEYS[3], 0, 0")],
    catcher: withoutFaults("count-down-latch"),
  },
  {
    id: "break-tells-the-first",
    bugs: [],
    mistake: "a barrier that breaks notifies only the first party",
    patches: [
      patch("lua/break-generation.lua", "  for _, party in ipairs", "  for place, party in ipairs"),
      patch(
        "lua/break-generation.lua",
        "    redis.pcall('PUBLISH', inbox .. client, '~' .. number)",
        "    if place == 1 then\n      redis.pcall('PUBLISH', inbox .. client, '~' .. number)\n    end",
      ),
    ],
    catcher: withoutFaults("barrier"),
  },
  {
    id: "arrival-for-a-third",
    bugs: [],
    mistake: "an arrival at a barrier counts until its party must ask again, not for its lease",
    patches: [patch("barrier/arrive.lua", "now + leaseMs * 1000, owner", "now + leaseMs * 340, owner")],
    catcher: withoutFaults("barrier"),
  },
  {
    id: "refused-arrival-comes-again",
    bugs: [],
    mistake: "a late copy of an arrival that did not wait completes the barrier",
    patches: [patch("barrier/arrive.lua", "    if enqueue == '2' then", "    if enqueue == '3' then")],
    catcher: test(
      "regressions/late-copy-of-a-refused-arrival.test.ts",
      "a late copy of an arrival with waitMs 0 does not complete the barrier",
    ),
  },
];

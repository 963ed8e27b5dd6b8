/** Mistakes of permits: semaphores and read-write locks. */
import { patch, simulation, type Tooth } from "../tooth.js";

/** Teeth for permits. */
export const PERMITS: readonly Tooth[] = [
  {
    id: "permits-not-counted-together",
    bugs: [],
    mistake: "permits are not counted together",
    patches: [],
    tampering: "permits are not counted together",
    catcher: simulation("semaphore", "X1"),
  },
  {
    id: "caller-ends-other-permits",
    bugs: ["B49"],
    mistake: "an acquire ends other holders' permits by its own lease length",
    patches: [
      patch(
        "permits/acquire.lua",
        "end\nreap()\nlosePlaces()\n\nif record then",
        "end\nlocal asked = now\nif not record then\n  now, first = now + leaseMs * 500, 0\nend\nreap()\nnow = asked\nlosePlaces()\n\nif record then",
      ),
    ],
    catcher: simulation("semaphore", "X1", "S1"),
  },
  {
    id: "client-clocks-end-permits",
    bugs: ["B50"],
    mistake: "permits end by the clocks of their callers",
    patches: [],
    tampering: "clocks of the clients",
    catcher: simulation("semaphore", "X1", "S1", "X3"),
  },
  {
    id: "release-raises-the-limit",
    bugs: ["B51"],
    mistake: "a release without a hold frees a permit",
    patches: [
      patch(
        "permits/release.lua",
        "if isHeld then\n  giveBack(owner, record)\nend",
        "if isHeld then\n  giveBack(owner, record)\nelse\n  used = used - 1\n  redis.call('HSET', KEYS[1], 'used', used)\nend",
      ),
    ],
    catcher: simulation("semaphore", "X1"),
  },
  {
    id: "dead-holders-keep-permits",
    bugs: ["B52"],
    mistake: "permits of a crashed holder are never freed",
    patches: [],
    catcher: { by: "search", rule: "permits-reap", finds: "stuck" },
  },
  {
    id: "hold-without-end",
    bugs: ["B52"],
    mistake: "a hold has no end",
    patches: [],
    tampering: "a hold has no end",
    catcher: simulation("mutex", "L2", "L4", "L7"),
  },
  {
    id: "one-reader-unlocks-all",
    bugs: ["B53"],
    mistake: "a reader that releases drops the other readers",
    patches: [
      patch(
        "permits/release.lua",
        "      redis.call('HSET', KEYS[1], 'used', rest)",
        "      redis.call('HSET', KEYS[1], 'used', 0)",
      ),
    ],
    catcher: simulation("read-write-lock", "X1", "S1", "S2"),
  },
  {
    id: "upgrade-among-readers",
    bugs: [],
    mistake: "an upgrade makes a writer beside readers",
    patches: [],
    tampering: "an upgrade makes a writer beside readers",
    catcher: simulation("read-write-lock", "X1"),
  },
  {
    id: "slots-of-the-dead",
    bugs: [],
    mistake: "permit numbers that were reserved for a vanished waiter are never used again",
    patches: [
      patch(
        "lua/permits-grant.lua",
        "        elseif slots ~= '' then\n          putBack(slots)\n          redis.call('HSET', KEYS[1], 'top', top, 'free', free)\n        end",
        "        end",
      ),
    ],
    catcher: simulation("semaphore", "X1"),
  },
];

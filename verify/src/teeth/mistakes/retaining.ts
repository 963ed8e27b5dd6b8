/** Mistakes of claims that are retained after their last release. */
import { patch, type Tooth, test } from "../tooth.js";

const CLAIM = "retain/retained-claim.ts";
const UNIT = "unit/retain.test.ts";
const SIMULATION: Tooth["catcher"] = { by: "simulation", kind: "retained-mutex", profile: "none", finds: ["L1"] };

/** Teeth for retained claims. */
export const RETAINING: readonly Tooth[] = [
  {
    id: "retained-not-recalled",
    bugs: [],
    mistake: "a script that queues sends no recall to the process that retains the lock",
    patches: [patch("mutex/acquire.lua", "  -- include recall\n", "")],
    catcher: SIMULATION,
  },
  {
    id: "recall-ignored",
    bugs: [],
    mistake: "a process that retains the lock keeps it after a recall",
    patches: [
      patch(
        CLAIM,
        "  recheck(): void {\n    this.recalled();\n",
        "  recheck(): void {\n    this.#isRecalled = true;\n",
      ),
    ],
    catcher: SIMULATION,
  },
  {
    id: "recall-in-use-ignored",
    bugs: [],
    mistake: "a recall that comes while the lock is in use is forgotten at the release",
    patches: [patch("core/hold.ts", "if (this.#sharedClaim?.recalled?.() !== true) this.#renewer", "this.#renewer")],
    catcher: test(UNIT, "of a claim in use makes its lease be released as usual"),
  },
  {
    id: "retained-without-clocks",
    bugs: [],
    mistake: "a retained lock is reused until a timer fires, although the process was frozen for longer than the lease",
    patches: [patch(CLAIM, "if (!this.#isKept || this.#leftMs(at) <= 0) {", "if (!this.#isKept) {")],
    catcher: test(
      UNIT,
      "a claim is not reused if the process was frozen for longer than the lease, although no timer has fired",
    ),
  },
  {
    id: "retained-past-its-tokens",
    bugs: [],
    mistake: "a retained lock is reused when its reserved tokens are used up",
    patches: [patch(CLAIM, "!this.#isRecalled && this.#served < claim.amount &&", "!this.#isRecalled &&")],
    catcher: test(UNIT, "the next claim reserves twice as many only after all of them were used"),
  },
  {
    id: "retained-after-a-wait",
    bugs: [],
    mistake: "a lock that others wait for is retained, because it was granted by message",
    patches: [
      patch(CLAIM, "granted(protocol.key, hasWaited, callers, retainMs)", "granted(protocol.key, false, 0, retainMs)"),
      patch(CLAIM, "granted.mayStillRun === NOTHING_RUNS && granted.isHandedOver !== true", "granted.token > 0"),
    ],
    catcher: test(UNIT, "if it had to wait, because others may wait behind it"),
  },
];

/**
 * Mistakes when callers share a claim or a hold: which callers a grant serves, for how long, and what happens to the
 * rest.
 */
import { patch, simulation, type Tooth, test } from "../tooth.js";

const QUEUE = "core/local-queue.ts";
const BATCH = "core/batch.ts";

/** Teeth for shared claims. */
export const SHARING: readonly Tooth[] = [
  {
    id: "late-caller-in-a-batch",
    bugs: [],
    mistake: "a caller that calls after the server made a grant gets one of its leases, with an older token",
    patches: [patch(QUEUE, "?.hadCalledBy(granted.setAt) === true", "?.hadCalledBy(granted.setAt) !== undefined")],
    catcher: simulation("mutex", "F2"),
  },
  {
    id: "one-token-for-a-batch",
    bugs: [],
    mistake: "all leases of a shared claim have the same token",
    patches: [patch(BATCH, "caller.options, token + place, sharedClaim", "caller.options, token, sharedClaim")],
    catcher: simulation("mutex", "F1"),
  },
  {
    id: "batch-past-its-tokens",
    bugs: [],
    mistake: "a grant serves more callers than it has reserved tokens for",
    patches: [patch(QUEUE, "Math.min(granted.claim.amount, this.#waiting.length)", "this.#waiting.length")],
    catcher: simulation("mutex", "L6"),
  },
  {
    id: "batch-without-end",
    bugs: [],
    mistake: "a process keeps the lock as long as it has callers, while others wait",
    patches: [patch(BATCH, "      at.monotonicMs - this.#startedAtMs < BATCH_MS &&\n", "")],
    catcher: simulation("mutex", "L6"),
  },
  {
    id: "handed-on-when-over",
    bugs: [],
    mistake: "the next caller gets a lease of a claim that was lost or released",
    patches: [
      patch(
        BATCH,
        "    const left = this.end();\n    if",
        "    if (this.serveNext()) return;\n    const left = this.end();\n    if",
      ),
    ],
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "rest-of-a-batch-forgotten",
    bugs: [],
    mistake: "a caller that a batch could no longer serve waits forever",
    patches: [patch(BATCH, "if (left.length > 0) this.#onLeft(left);", "void left;")],
    catcher: simulation("mutex", "L2", "L4", "L7"),
  },
  {
    id: "rest-of-a-batch-overtaken",
    bugs: [],
    mistake: "a later caller is granted first if the loss of a batch is noticed late, and its holder continues",
    patches: [
      patch(QUEUE, "    this.#waiting.unshift(...(this.#batch?.end() ?? []));\n", ""),
      patch(QUEUE, "    if (this.#lastClaim !== undefined) this.#session.ended(this.#lastClaim);\n", ""),
    ],
    catcher: test("unit/local-queue.test.ts", "reports the loss of its last lease when the next grant arrives"),
  },
  {
    id: "claim-stays-behind",
    bugs: [],
    mistake: "a claim stays in the queue when its last caller has left",
    patches: [patch(QUEUE, "      void last?.abandon();\n", "      void last;\n")],
    catcher: simulation("mutex", "L4"),
  },
  {
    id: "one-leaves-for-all",
    bugs: [],
    mistake: "a caller that leaves withdraws a claim that others share",
    patches: [patch(QUEUE, "    if (this.#waiting.length > 0) return { waiter };\n", "")],
    catcher: simulation("mutex", "L2", "L4", "L7"),
  },
  {
    id: "exported-hold-entered-again",
    bugs: [],
    mistake: "a nested acquire after an export finds the exported hold, and is told that it was lost",
    patches: [
      patch(
        "reentrant-mutex/shared-hold.ts",
        "    const exported = this.hold.handOver();\n    this.#entries.clear();\n",
        "    const exported = this.hold.handOver();\n",
      ),
    ],
    catcher: test("unit/reentrant-mutex.test.ts", "re-entering after the outer lease was exported gets a new hold"),
  },
  {
    id: "inner-release-of-a-lost-hold",
    bugs: [],
    mistake: "a nested lease reports a release although the hold has ended",
    patches: [
      patch(
        "reentrant-mutex/shared-hold.ts",
        "if (this.#entries.size > 0 && this.hold.validForMs() > 0)",
        "if (this.#entries.size > 0)",
      ),
    ],
    catcher: test("unit/reentrant-mutex.test.ts", "a nested lease does not report a release after the hold was lost"),
  },
];

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
    mistake: "who calls after the server made a grant gets one of its leases, with a token from before",
    patches: [patch(QUEUE, "?.hadCalledBy(granted.setAt) === true", "?.hadCalledBy(granted.setAt) !== undefined")],
    catcher: simulation("mutex", "F2"),
  },
  {
    id: "one-token-for-a-batch",
    bugs: [],
    mistake: "all leases of a shared claim have one token",
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
    mistake: "a process goes on by itself for as long as it has callers, and the others wait",
    patches: [patch(BATCH, "      at.monotonicMs - this.#startedAtMs < BATCH_MS &&\n", "")],
    catcher: simulation("mutex", "L6"),
  },
  {
    id: "handed-on-when-over",
    bugs: [],
    mistake: "the next caller gets a lease of a claim that was lost or given back",
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
    mistake: "whom a batch could not serve any more waits for ever",
    patches: [patch(BATCH, "if (left.length > 0) this.#onLeft(left);", "void left;")],
    catcher: simulation("mutex", "L2", "L4", "L7"),
  },
  {
    id: "rest-of-a-batch-overtaken",
    bugs: [],
    mistake: "who called later is granted first where the loss of a batch is heard late, and its holder goes on",
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
    mistake: "who leaves takes the claim with it that others wait for too",
    patches: [patch(QUEUE, "    if (this.#waiting.length > 0) return { waiter };\n", "")],
    catcher: simulation("mutex", "L2", "L4", "L7"),
  },
  {
    id: "exported-hold-entered-again",
    bugs: [],
    mistake: "whoever enters again after an export finds the hold that is gone, and is told that it was lost",
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
    mistake: "a lease inside another one says that it was released, though the hold of both is over",
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

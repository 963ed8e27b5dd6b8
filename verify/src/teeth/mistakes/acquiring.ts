/** Mistakes when acquiring: the request, the meaning of a reply, and how long it is valid. */
import { patch, simulation, type Tooth, test } from "../tooth.js";

const WAITER = "core/waiter.ts";
const QUESTIONS = "core/waiter.ts";
const DEADLINE = "core/time.ts";

/** Teeth for acquiring. */
export const ACQUIRING: readonly Tooth[] = [
  {
    id: "drift-added",
    bugs: ["B01"],
    mistake: "the drift allowance is added to the validity instead of subtracted",
    patches: [patch("core/time.ts", "leaseMs - (leaseMs * DRIFT_RATE + 2)", "leaseMs + (leaseMs * DRIFT_RATE + 2)")],
    catcher: simulation("mutex", "S2"),
  },
  {
    id: "first-try-dates-all",
    bugs: ["B02"],
    mistake: "validity counts from the first attempt, so a late success has already expired",
    patches: [
      patch(
        "core/time.ts",
        "this.#firstSentAt ??= sentAt;\n    return sentAt;",
        "return (this.#firstSentAt ??= sentAt);",
      ),
    ],
    catcher: test(
      "unit/waiter.test.ts",
      "a lost reply that arrives after the lease it granted is over creates no lease",
    ),
  },
  {
    id: "validity-from-the-answer",
    bugs: ["B03"],
    mistake: "validity counts from the answer",
    patches: [patch(QUESTIONS, "this.#answered(answer, sentAt);", "this.#answered(answer, this.#moment.sent());")],
    catcher: test(
      "unit/waiter.test.ts",
      "a lost reply that arrives after the lease it granted is over creates no lease",
    ),
  },
  {
    id: "lease-from-the-answer",
    bugs: ["B03"],
    mistake: "a lease counts from its reply, however late it arrives",
    patches: [],
    catcher: { by: "search", rule: "validity-from-sending", finds: "S2" },
  },
  {
    id: "born-expired",
    bugs: ["B04"],
    mistake: "a reply that arrives after the end of the lease that it grants creates a lease",
    patches: [
      patch(
        WAITER,
        'attempt.outcome === "granted" && this.#isOver(sentAt) &&',
        'attempt.outcome === "granted" && this.#claim.leaseMs < 0 &&',
      ),
    ],
    catcher: test(
      "unit/waiter.test.ts",
      "a lost reply that arrives after the lease it granted is over creates no lease",
    ),
  },
  {
    id: "own-key-is-a-stranger",
    bugs: ["B09"],
    mistake: "a caller that asks again after a lost reply is refused because of its own hold",
    patches: [],
    catcher: { by: "search", rule: "acquire-answers-again", finds: "a holder is in the queue" },
  },
  {
    id: "zero-is-the-default",
    bugs: ["B11"],
    mistake: "a wait limit of 0 is replaced by the default",
    patches: [
      patch(
        "core/options.ts",
        "if (value === undefined) continue;",
        "if (value === undefined || value === 0) continue;",
      ),
    ],
    catcher: test("unit/waiter.test.ts", "a wait of 0 ms sends one request, does not queue and reports the holder"),
  },
  {
    id: "no-attempts-is-success",
    bugs: ["B12"],
    mistake: "a refused attempt is reported as a success",
    patches: [
      patch(
        WAITER,
        "    if (this.#options.waitMs === 0) {\n      this.#timeUp();\n      return;\n    }",
        "    if (this.#options.waitMs === 0) {\n      this.#grant(attempt.nowUs, sentAt, []);\n      return;\n    }",
      ),
    ],
    catcher: simulation("mutex", "S5"),
  },
  {
    id: "late-win-kept-by-nobody",
    bugs: ["B13"],
    mistake: "a wait that is given up forgets its request in flight",
    patches: [
      patch(
        WAITER,
        "if (!this.#isQueued && !this.#isUnclear()) return true;",
        "if (!this.#isQueued && !this.#uncertain.isUncertain) return true;",
      ),
    ],
    catcher: test("unit/cleanup.test.ts", "a cleanup gives a late grant back immediately"),
  },
  {
    id: "error-in-the-wait-is-lost",
    bugs: ["B15"],
    mistake: "a server error during a wait is ignored: the promise stays pending",
    patches: [
      patch(
        QUESTIONS,
        "        this.#open -= 1;\n        this.#failed(error);",
        "        this.#open -= 1;\n        void error;",
      ),
    ],
    catcher: simulation("mutex", "L2", "L7"),
  },
  {
    id: "no-answer-is-a-yes",
    bugs: ["B09", "B12"],
    mistake: "a missing reply to an acquire counts as a success",
    patches: [],
    tampering: "a missing reply to an acquire counts as a success",
    catcher: simulation("mutex", "S5"),
  },
  {
    id: "hidden-default-timeout",
    bugs: ["B16"],
    mistake: "a wait without a limit ends after a hidden default",
    patches: [
      patch(DEADLINE, "if (this.#isExact || this.#waitMs === Infinity) return;", "if (this.#isExact) return;"),
      patch(
        DEADLINE,
        "Math.max(leastMs, this.leftMs()), true)",
        "Math.min(30_000, Math.max(leastMs, this.leftMs())), true)",
      ),
    ],
    catcher: test("unit/waiter.test.ts", "a waiter in the queue with waitMs Infinity never times out"),
  },
  {
    id: "shared-owner",
    bugs: ["B23"],
    mistake: "all acquires through one object have the same owner",
    patches: [patch("core/session.ts", "this.#lastNumber += 1;", "this.#lastNumber = 1;")],
    catcher: simulation("mutex", "S1", "S2", "F1", "F2", "F3"),
  },
  {
    id: "owner-is-a-counter",
    bugs: ["B22"],
    mistake: "a claim is identified by a counter instead of a random id",
    patches: [
      patch(
        "core/protocol.ts",
        "const owner = `${this.#clientId}/${this.number}/",
        "void this.#clientId;\n    const owner = `client/${this.number}/",
      ),
      patch(
        "core/protocol.ts",
        "const label = this.#label && encodeURIComponent(this.#label);",
        'void this.#label;\n    const label = "";',
      ),
    ],
    catcher: simulation("mutex", "S1", "S2", "F1", "F2", "F3"),
  },
  {
    id: "lease-argument-dropped",
    bugs: ["B35"],
    mistake: "the caller's lease length is replaced by the default",
    patches: [
      patch(
        "core/options.ts",
        "    check(value);\n    resolved[option] =",
        '    check(value);\n    if (option !== "leaseMs") resolved[option] =',
      ),
    ],
    catcher: test(
      "unit/hold.test.ts",
      "renewal that hangs is tried at least three times, and the loss is reported in time",
    ),
  },
];

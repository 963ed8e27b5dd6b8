/** Mistakes in hand-overs: a grant by message is short until its holder confirms it. */
import { patch, simulation, type Tooth, test } from "../tooth.js";

const WAITER = "core/waiter.ts";
const RENEWER = "core/renewer.ts";
const BATCH = "core/batch.ts";
const PROVISIONAL = "unit/provisional.test.ts";

/** Runs in which processes freeze and nothing else goes wrong. */
function stalled(kind: string, ...finds: readonly string[]): Tooth["catcher"] {
  return { ...simulation(kind, ...finds), profile: "stalls" };
}

/** Teeth for hand-overs. */
export const HANDING_OVER: readonly Tooth[] = [
  {
    id: "unconfirmed-for-the-whole-lease",
    bugs: [],
    mistake: "the holder of a grant by message counts the whole lease before it has confirmed it",
    patches: [patch(WAITER, "this.#keep(token, setAt, slots, handOffMs);", "this.#keep(token, setAt, slots);")],
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "never-confirmed",
    bugs: [],
    mistake: "a grant by message is never confirmed",
    patches: [
      patch(
        WAITER,
        "if (isNoShorter || (isShort && confirmsFirst",
        "if (isNoShorter || !isShort || (isShort && confirmsFirst",
      ),
      patch(
        RENEWER,
        "    if (this.#provisionalMs !== undefined && !this.#options.renew) void this.#renew();\n    if (this.confirmAtMs < Infinity) this.#session.confirmations.add(this);\n",
        "",
      ),
    ],
    catcher: { ...simulation("mutex", "S1"), profile: "none" },
  },
  {
    id: "confirmed-at-the-pace-of-the-lease",
    bugs: [],
    mistake: "a confirmation without a reply is retried as late as a renewal of the whole lease",
    patches: [
      patch(RENEWER, "answerInMs(this.#provisionalMs ?? leaseMs, this", "answerInMs(leaseMs, this"),
      patch(
        RENEWER,
        "this.#renewal.failed(this.#provisionalMs ?? this.validity.leaseMs);",
        "this.#renewal.failed(this.validity.leaseMs);",
      ),
    ],
    catcher: test(
      PROVISIONAL,
      "a grant of a lock whose last hold was short retries an unanswered confirmation several times before the short lease ends",
    ),
  },
  {
    id: "batch-by-the-whole-lease",
    bugs: [],
    mistake: "callers that share a claim use its whole lease while it is unconfirmed",
    patches: [
      patch(
        BATCH,
        "this.#validUntil = validUntil(setAt, provisionalMs);",
        "this.#validUntil = validUntil(setAt, claim.leaseMs);",
      ),
      patch(BATCH, "(provisionalMs ?? claim.leaseMs) / 2", "claim.leaseMs / 2"),
    ],
    catcher: test(PROVISIONAL, "callers that share a claim are not served once half of the short lease is over"),
  },
  ...(
    [
      [
        "short-length-in-the-script",
        "the script contains the short length of a hand-off",
        simulation("mutex", "S1", "S2"),
      ],
      ["hand-off-of-a-whole-lease", "a hand-off lasts for the whole lease", simulation("mutex", "L6")],
      ["answer-left-short", "a grant by an answer is as short as one by message", simulation("mutex", "S1", "S2")],
      ["mark-left-by-a-release", "a release leaves the mark of a hand-off", simulation("mutex", "L6")],
      ["mark-left-by-a-confirmation", "a confirmation leaves the mark of a hand-off", simulation("mutex", "L6")],
      ["places-kept", "a client that never confirmed keeps its other places", stalled("mutex", "L6")],
      ["places-lost-in-silence", "a client that loses its places is not notified", stalled("mutex", "L2", "X3")],
      ["permits-left-marked", "a confirmation of permits leaves their mark", simulation("semaphore", "L6")],
      ["extended-permits-left-marked", "an extension of permits leaves their mark", simulation("semaphore", "L6")],
      [
        "places-for-permits-kept",
        "a client that never confirmed its permits keeps its other places",
        stalled("semaphore", "L6"),
      ],
      [
        "places-for-permits-lost-in-silence",
        "a client that loses its places in the queue for permits is not notified",
        stalled("semaphore", "L2", "X3"),
      ],
    ] as const
  ).map(([id, mistake, catcher]): Tooth => ({ id, bugs: [], mistake, patches: [], tampering: mistake, catcher })),
];

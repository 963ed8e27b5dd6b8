/** Mistakes while holding: extension, renewal, and how a holder learns of a loss. */
import { patch, simulation, type Tooth, test } from "../tooth.js";

const RENEWER = "core/renewer.ts";

/** Teeth for holding. */
export const HOLDING: readonly Tooth[] = [
  {
    id: "renewal-from-the-grant",
    bugs: ["B05"],
    mistake: "the first renewal is scheduled from the reply, although validity began earlier",
    patches: [
      patch(
        RENEWER,
        "!isShort ? setAt.monotonicMs + leaseMs / 3 : Infinity",
        "!isShort ? runtime.monotonicMs() + leaseMs / 3 : Infinity",
      ),
    ],
    catcher: test("unit/hold.test.ts", "renewal is scheduled from the moment the acquire was sent, not from its reply"),
  },
  {
    id: "extension-plants-anew",
    bugs: ["B26"],
    mistake: "an extension revives an ended lease",
    patches: [],
    tampering: "an extension revives an ended lease",
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "extension-compares-no-owner",
    bugs: ["B26"],
    mistake: "an extension compares no owner",
    patches: [],
    catcher: { by: "search", rule: "extend-compares-owner", finds: "S2" },
  },
  {
    id: "extension-in-two",
    bugs: ["B27"],
    mistake: "an extension checks in one request and writes in the next",
    patches: [],
    tampering: "an extension in two requests",
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "failed-renewal-is-a-yes",
    bugs: ["B29"],
    mistake: "a missing reply to a renewal counts as a success",
    patches: [],
    tampering: "a missing reply to an extension counts as a success",
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "renewal-ends-at-its-first-error",
    bugs: ["B29"],
    mistake: "renewal ends silently at its first error",
    patches: [
      patch(
        RENEWER,
        "if (outcome === undefined) this.#renewal.failed(this.#provisionalMs ?? this.validity.leaseMs);",
        "if (outcome === undefined) this.#renewal.begun();",
      ),
    ],
    catcher: test(
      "unit/hold.test.ts",
      "renewal that succeeds after many failures keeps the lease and schedules the next a third later",
    ),
  },
  {
    id: "renewed-once",
    bugs: ["B29"],
    mistake: "a lease is renewed once and never again",
    patches: [
      patch(
        "core/renewal.ts",
        "    this.restart(leaseMs, nowMs);\n  }",
        "    this.#nextAtMs = leaseMs * Infinity;\n  }",
      ),
    ],
    catcher: { by: "simulation", kind: "mutex", profile: "none", finds: ["S1"] },
  },
  {
    id: "renewal-error-escapes",
    bugs: ["B30"],
    mistake: "an error of a renewal escapes as an unhandled rejection",
    patches: [patch(RENEWER, "      failure = error;\n", "      throw error;\n")],
    catcher: simulation("mutex", "L7"),
  },
  {
    id: "one-failure-is-a-loss",
    bugs: ["B31"],
    mistake: "one failed renewal is a loss, although time remains",
    patches: [
      patch(
        RENEWER,
        "if (outcome === undefined) this.#renewal.failed(this.#provisionalMs ?? this.validity.leaseMs);",
        'if (outcome === undefined) this.#kept.lose("expired");',
      ),
    ],
    catcher: test(
      "unit/hold.test.ts",
      "renewal that succeeds after many failures keeps the lease and schedules the next a third later",
    ),
  },
  {
    id: "no-deadline-timer",
    bugs: ["B32"],
    mistake: "no timer reports the end of a lease",
    patches: [],
    tampering: "the end of a lease is not reported",
    catcher: simulation("mutex", "S4"),
  },
  {
    id: "no-clock-of-its-own",
    bugs: ["B32"],
    mistake: "a holder never checks its clock",
    patches: [],
    catcher: { by: "search", rule: "own-clock", finds: "S2" },
  },
  {
    id: "renewal-after-release",
    bugs: ["B33"],
    mistake: "a renewal in flight at the release schedules the next one",
    patches: [
      patch(
        RENEWER,
        "    if (this.#isResting) {\n",
        '    if (this.#isResting && this.#isOver && outcome === "unclaimed") {\n',
      ),
      patch(
        RENEWER,
        "    this.#timer = undefined;\n    if (this.#isResting) return;\n    this.quietUntilMs",
        "    this.#timer = undefined;\n    this.quietUntilMs",
      ),
      patch(
        RENEWER,
        "    this.#timer = undefined;\n    if (this.#kept.validForMs() <= 0) return;\n",
        "    this.#timer = undefined;\n",
      ),
    ],
    catcher: simulation("mutex", "L7"),
  },
  {
    id: "timers-go-on",
    bugs: ["B33"],
    mistake: "timers continue after the end",
    patches: [],
    tampering: "timers continue after the end",
    catcher: simulation("mutex", "L7"),
  },
  {
    id: "timer-overflow",
    bugs: ["B34"],
    mistake: "a timer beyond 2^31 ms fires immediately",
    patches: [patch("core/runtime.ts", "delayMs > TIMER_MAX_MS\n", "delayMs > Infinity\n")],
    catcher: test("unit/runtime.test.ts", "a timer longer than Node.js supports fires exactly when it is due"),
  },
  {
    id: "renewal-hot-loop",
    bugs: ["B34"],
    mistake: "a renewal that fails immediately is resent immediately",
    patches: [patch("core/renewal.ts", "Math.min(this.#retryMs, leaseMs / 12)", "1")],
    catcher: test(
      "unit/hold.test.ts",
      "a store that fails immediately receives a bounded number of renewals while a lease is held",
    ),
  },
  {
    id: "re-entry-shortens",
    bugs: ["B36"],
    mistake: "a nested acquire changes the lease for existing holders",
    patches: [
      patch(
        "reentrant-mutex/reentrant-mutex.ts",
        "if (leaseMs !== undefined && (leaseMs > hold.leaseMs || !hold.options.renew)) {",
        "if (leaseMs !== undefined) {",
      ),
      patch(
        "reentrant-mutex/shared-hold.ts",
        "hold.extend(count > 1 ? Math.max(leaseMs, hold.leaseMs) : leaseMs)",
        "hold.extend(count > 1 ? Math.min(leaseMs, hold.leaseMs) : leaseMs)",
      ),
    ],
    catcher: test(
      "contract/embedded.test.ts",
      "reentrant-mutex on embedded a nested acquire can lengthen the shared lease but never shortens it",
    ),
  },
  {
    id: "no-cap-on-renewal",
    bugs: ["B37"],
    mistake: "maxHoldMs does not end a hold that is renewed",
    patches: [patch(RENEWER, "if (this.validity.heldMs() >= this.#options.maxHoldMs) {", "if (false) {")],
    catcher: test("unit/hold.test.ts", "loss maxHoldMs ends the hold at exactly that time despite renewal"),
  },
  {
    id: "extension-in-seconds",
    bugs: ["B38"],
    mistake: "an extension truncates milliseconds to seconds",
    patches: [
      patch(
        "lua/extend-lease.lua",
        "    redis.call('PEXPIRE', KEYS[1], leaseMs)",
        "    redis.call('PEXPIRE', KEYS[1], math.floor(leaseMs / 1000) * 1000)",
      ),
    ],
    catcher: test("regressions/extension-in-milliseconds.test.ts", "an extension keeps its milliseconds on the server"),
  },
  {
    id: "lease-shorter-than-told",
    bugs: ["B38"],
    mistake: "a lease on the server is shorter than the caller was told",
    patches: [],
    tampering: "a lease on the server is shorter than the caller was told",
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "wall-clock-only",
    bugs: [],
    mistake: "only the wall clock ends a lease",
    patches: [
      patch(
        "core/time.ts",
        "Math.min(moment.monotonicMs - at.monotonicMs, moment.wallMs - at.wallMs)",
        "moment.wallMs - at.wallMs",
      ),
    ],
    catcher: test("unit/hold.test.ts", "loss setting the wall clock back does not lengthen a lease"),
  },
  {
    id: "monotonic-clock-only",
    bugs: [],
    mistake: "only the monotonic clock, which stops in a suspended host, ends a lease",
    patches: [
      patch(
        "core/time.ts",
        "Math.min(moment.monotonicMs - at.monotonicMs, moment.wallMs - at.wallMs)",
        "moment.monotonicMs - at.monotonicMs",
      ),
    ],
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "refused-among-many",
    bugs: [],
    mistake: "among leases that are renewed together, a refused one counts as renewed",
    patches: [patch("core/renewal.ts", "if (refused.has(place)) lease.open();", "if (refused.has(-1)) lease.open();")],
    catcher: test("unit/bulk-renewal.test.ts", "stay held if one of them is deleted, and only that one is lost"),
  },
];

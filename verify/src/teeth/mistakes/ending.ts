/** Mistakes when releasing: its effect, its result, and leftovers. */
import { patch, simulation, type Tooth, test } from "../tooth.js";

/** Teeth for releasing. */
export const ENDING: readonly Tooth[] = [
  {
    id: "release-compares-no-owner",
    bugs: ["B17"],
    mistake: "a release compares no owner",
    patches: [],
    tampering: "a release compares no owner",
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "leaving-compares-no-owner",
    bugs: ["B17"],
    mistake: "leaving the queue compares no owner",
    patches: [],
    tampering: "leaving compares no owner",
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "late-release-ends-the-next-hold",
    bugs: ["B17"],
    mistake: "a release ends any holder's hold",
    patches: [],
    catcher: { by: "search", rule: "release-compares-owner", finds: "S2" },
  },
  {
    id: "release-masks-the-work",
    bugs: ["B18"],
    mistake: "a release that fails hides the error of the work",
    patches: [patch("core/acquire.ts", "const ended = held.release().catch(report);", "const ended = held.release();")],
    catcher: test(
      "contract/embedded.test.ts",
      "mutex on embedded run fails with the error of the work, even if the lease was lost",
    ),
  },
  {
    id: "background-release-not-sent",
    bugs: [],
    mistake: "a release in the background is lost: nobody sends it",
    patches: [
      patch(
        "core/acquire.ts",
        "const released = held.release();",
        "const released = isAwaited || !wasHeld ? held.release() : Promise.resolve();",
      ),
    ],
    catcher: { ...simulation("mutex", "L3"), profile: "background" },
  },
  {
    id: "background-release-too-late",
    bugs: [],
    mistake: "a release in the background is sent in a later turn, so a crash right after `run` loses it",
    patches: [
      patch(
        "core/acquire.ts",
        "const released = held.release();",
        "const released =\n    isAwaited || !wasHeld\n      ? held.release()\n      : new Promise((resolve) => session.runtime.startTimer(() => resolve(held.release()), 1, true));",
      ),
    ],
    catcher: { ...simulation("mutex", "L3"), profile: "background" },
  },
  {
    id: "background-release-lost-at-close",
    bugs: [],
    mistake: "`close` does not await a release in the background, which is lost with its connection",
    patches: [patch("core/session.ts", "    this.#background.add(work);\n", "")],
    catcher: test("unit/run-in-background.test.ts", "close with graceMs undefined awaits releases in the background"),
  },
  {
    id: "background-release-hides-a-loss",
    bugs: [],
    mistake: "with a release in the background, work that outlived its lease counts as successful",
    patches: [patch("core/acquire.ts", "if (isAwaited || !wasHeld) {", "if (isAwaited) {")],
    catcher: test(
      "contract/embedded.test.ts",
      "mutex on embedded run with a release in the background still fails with LeaseLostError if the lease was lost",
    ),
  },
  {
    id: "background-release-fails-silently",
    bugs: [],
    mistake: "the error of a release in the background reaches nobody",
    patches: [
      patch(
        "core/acquire.ts",
        "session.inBackground(released.catch(report));",
        "session.inBackground(released.catch(() => {}));",
      ),
    ],
    catcher: test(
      "unit/run-in-background.test.ts",
      "an error of a release that run does not reject with goes to onReleaseError and to the release event",
    ),
  },
  {
    id: "background-release-is-awaited",
    bugs: [],
    mistake: "`run` awaits the reply to a release in the background",
    patches: [
      patch("core/acquire.ts", "session.inBackground(released.catch(report));", "await released.catch(report);"),
    ],
    catcher: { ...simulation("semaphore", "L4"), profile: "background" },
  },
  {
    id: "native-release-forgets-a-waiter",
    bugs: [],
    mistake: "a release without a script deletes the lock, but does not hand it to a waiting claim",
    patches: [
      patch(
        "core/release.ts",
        'if (outcome === "released") return outcome;',
        'if (outcome !== "kept") return "released";',
      ),
    ],
    catcher: test(
      "unit/native-release.test.ts",
      "and by the script as well if others wait, and then counts as released whatever the script replies",
    ),
  },
  {
    id: "native-release-does-not-look",
    bugs: [],
    mistake: "the same, in every order of requests, replies and messages",
    patches: [],
    catcher: { by: "search", rule: "look-after-delete", finds: "L3" },
  },
  {
    id: "native-release-looks-first",
    bugs: [],
    mistake:
      "a release without a script looks for waiters before it deletes the lock, so one that queues in between is forgotten",
    patches: [],
    catcher: { by: "search", rule: "delete-before-look", finds: "L3" },
  },
  {
    id: "native-release-not-handed-on",
    bugs: [],
    mistake: "the script that follows a release without a script finds the lock free, and does nothing",
    patches: [],
    catcher: { by: "search", rule: "freed-is-handed-on", finds: "L3" },
  },
  {
    id: "native-release-of-a-second-grant",
    bugs: [],
    mistake: "a claim that may have been granted twice is released without a comparison of its token",
    patches: [patch("core/release.ts", "isPlain && !mayStillRun() ?", "claim.leaseMs > 0 ?")],
    catcher: test(
      "unit/native-release.test.ts",
      "if the connection was replaced while it was requested, because the first copy may still arrive",
    ),
  },
  {
    id: "release-never-gives-up",
    bugs: ["B19"],
    mistake: "a release is retried forever",
    patches: [
      patch(
        "core/release.ts",
        "!error.transient || runtime.monotonicMs() >= stopAtMs) {",
        "!error.transient || runtime.monotonicMs() >= stopAtMs * 1e6) {",
      ),
    ],
    catcher: test(
      "unit/cleanup.test.ts",
      "a release without a reply rejects in bounded time and continues in the background until the lease is over",
    ),
  },
  {
    id: "repeated-release-not-held",
    bugs: ["B20"],
    mistake: "a release whose first reply was lost reports that nothing was held",
    patches: [
      patch("core/release.ts", 'return mayHaveRun && ended !== "forgotten" ? "released" : ended;', "return ended;"),
    ],
    catcher: test(
      "unit/cleanup.test.ts",
      "a release counts as released if the first reply is lost and the second says `not held`",
    ),
  },
  {
    id: "false-loss",
    bugs: ["B20"],
    mistake: "a resent release is reported as a loss",
    patches: [],
    catcher: { by: "search", rule: "sent-twice", finds: "false loss" },
  },
  {
    id: "abort-leaves-nothing-undone",
    bugs: ["B21"],
    mistake: "an aborted waiter neither leaves the queue nor releases its grant",
    patches: [patch("core/waiter.ts", "    return this.#cleanUp();\n", "    return Promise.resolve(true);\n")],
    catcher: test("unit/waiter.test.ts", "a wait that is aborted while its grant is in transit gives the grant back"),
  },
  {
    id: "nobody-leaves",
    bugs: ["B21"],
    mistake: "a waiter that gives up does not tell the server",
    patches: [],
    catcher: { by: "search", rule: "leave-at-all", finds: "ghost" },
  },
  {
    id: "lost-release-is-success",
    bugs: ["B24"],
    mistake: "a release is reported as a success although another client held the lock meanwhile",
    patches: [
      patch(
        "core/lease.ts",
        'if (outcome !== "lost") return outcome;',
        'return outcome === "lost" ? "released" : outcome;',
      ),
    ],
    catcher: test(
      "contract/embedded.test.ts",
      "mutex on embedded an expired lease cannot release, extend or shorten the next holder's lease",
    ),
  },
  {
    id: "multi-release-stops-at-an-error",
    bugs: ["B25"],
    mistake: "a release of several locks stops at the first error",
    patches: [
      patch(
        "multi-lock/multi-hold.ts",
        "const ends = await Promise.allSettled(this.#leases.map((lease) => lease.release()));",
        'const ends: PromiseSettledResult<ReleaseOutcome>[] = [];\n    for (const lease of this.#leases) ends.push({ status: "fulfilled", value: await lease.release() });',
      ),
    ],
    catcher: test(
      "unit/multi-lock.test.ts",
      "a lost reply to one release is an error, and the other mutexes are still released",
    ),
  },
  {
    id: "locks-in-the-given-order",
    bugs: ["B64"],
    mistake: "several locks are taken in the order in which they were given",
    patches: [
      patch(
        "multi-lock/in-order.ts",
        "return locks.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));",
        "void keyOf;\n  return locks;",
      ),
    ],
    catcher: test(
      "unit/multi-lock.test.ts",
      "round trips if one mutex is held, the mutexes are acquired one by one in key order",
    ),
  },
  {
    id: "failed-try-keeps-the-first-locks",
    bugs: [],
    mistake: "an attempt at several locks that fails at a later one keeps the earlier ones",
    patches: [
      patch(
        "multi-lock/in-order.ts",
        "  } catch (error) {\n    void releaseAll(held);\n    throw error;",
        "  } catch (error) {\n    throw error;",
      ),
    ],
    catcher: test(
      "unit/multi-lock.test.ts",
      "tryAcquire of several kinds that fails at the second lock gives the first back",
    ),
  },
  {
    id: "forced-by-the-token-before",
    bugs: [],
    mistake: "a forced release with the token of the previous grant ends the current hold",
    patches: [patch("mutex/force-release.lua", "after - block >= 0", "after - block > 0")],
    catcher: test(
      "regressions/forced-release-by-token.test.ts",
      "the token of the previous grant does not force-release the current hold: mutex",
    ),
  },
];

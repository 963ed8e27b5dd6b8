/** Mistakes when waiting: queues, messages, and the fallback for lost messages. */
import { patch, simulation, type Tooth, test } from "../tooth.js";

const WAITER = "core/waiter.ts";
const QUESTIONS = "core/waiter.ts";
const LOCAL_QUEUE = "core/local-queue.ts";
const DEADLINE = "core/time.ts";
const MOMENT = "core/time.ts";
const HUB = "stores/inbox-hub.ts";

/** Teeth for waiting. */
export const WAITING: readonly Tooth[] = [
  {
    id: "stale-grant-believed",
    bugs: ["B14"],
    mistake: "a waiter accepts a grant whose lease ended while the message was in flight",
    patches: [
      patch(MOMENT, "grantedAtUs < this.#sample.serverUs) return undefined;", "grantedAtUs < 0) return undefined;"),
      patch(
        MOMENT,
        "msUntil(validUntil(setAt, leaseMs), this.#runtime) < leaseMs / 2 ? undefined : setAt",
        "receivedAt",
      ),
    ],
    catcher: simulation("mutex", "S1", "S2"),
  },
  {
    id: "no-second-try-after-subscribing",
    bugs: ["B39"],
    mistake: "a waiter does not ask again after its subscription, so a release in between is missed",
    patches: [
      patch(
        QUESTIONS,
        "session.listen(protocol, session.commandTimeoutMs).then(() => this.ask(), goWithout);\n      // Keeps the process alive while subscribing, and asks the server again if that takes too long.\n      this.#later().in(session.commandTimeoutMs);",
        "session.listen(protocol, session.commandTimeoutMs).then(() => {}, goWithout);",
      ),
    ],
    catcher: simulation("mutex", "L2", "L7"),
  },
  {
    id: "one-unsubscribes-for-all",
    bugs: ["B40"],
    mistake: "a waiter that stops listening on a channel makes the others on it deaf",
    patches: [
      patch(
        HUB,
        "if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;",
        "channel.listeners.clear();",
      ),
    ],
    catcher: test(
      "stores/contract.test.ts",
      "ioredis 6 a closed inbox receives nothing and is unsubscribed, and the others still receive",
    ),
  },
  {
    id: "nothing-behind-the-message",
    bugs: ["B41"],
    mistake: "no timer backs up the message of a grant",
    patches: [],
    tampering: "no timer backs up a message",
    catcher: simulation("mutex", "L2", "L7"),
  },
  {
    id: "no-recheck",
    bugs: ["B41"],
    mistake: "a waiter never asks again",
    patches: [],
    catcher: { by: "search", rule: "recheck", finds: "stuck" },
  },
  {
    id: "wait-cut-to-the-lease",
    bugs: ["B42"],
    mistake: "a wait is limited to the rest of the holder's lease",
    patches: [
      patch(WAITER, "if (isFirst) this.#startDeadline();", "if (isFirst) this.#startDeadline(attempt.restMs);"),
      patch(WAITER, "#startDeadline(): void {", "#startDeadline(restMs = Infinity): void {"),
      patch(WAITER, "this.#ends.waiting?.();", "this.#ends.waiting?.(restMs);"),
      patch(LOCAL_QUEUE, "      waiting: () => {", "      waiting: (restMs) => {"),
      patch(
        LOCAL_QUEUE,
        "for (const caller of this.#waiting) caller.deadline.start();\n      },",
        "for (const caller of this.#waiting) caller.deadline.start(0, restMs);\n      },",
      ),
      patch(DEADLINE, "start(leastMs = 0): void {", "start(leastMs = 0, restMs = Infinity): void {"),
      patch(DEADLINE, "this.leftMs()), true)", "Math.min(restMs, this.leftMs())), true)"),
    ],
    catcher: test(
      "contract/embedded.test.ts",
      "mutex on embedded a wait can outlast the leaseMs of a holder that renews",
    ),
  },
  {
    id: "deaf-after-reconnect",
    bugs: ["B43"],
    mistake: "a subscription is not restored after a reconnect",
    patches: [
      patch(
        HUB,
        "        onReady: () => {\n          if (this.#line === line) void this.#resubscribe();\n        },",
        "        onReady: () => {},",
      ),
    ],
    catcher: test(
      "stores/contract.test.ts",
      "ioredis 6 a killed subscriber connection reconnects, resubscribes and only then reports it",
    ),
  },
  {
    id: "place-leaked",
    bugs: ["B44"],
    mistake: "a wait that ends keeps its listener on the caller's signal",
    patches: [patch(DEADLINE, "this.#stopListening?.();", "return;")],
    catcher: test("unit/waiter.test.ts", "a wait leaves no listener on the signal, however it ends"),
  },
  {
    id: "dead-head-gets-it",
    bugs: ["B45"],
    mistake: "a release hands over to a waiter whose process is gone",
    patches: [],
    catcher: { by: "search", rule: "skip-the-dead", finds: "L6" },
  },
  {
    id: "dead-head-of-permits",
    bugs: ["B45"],
    mistake: "a dead waiter that wants more than is free blocks all waiters behind it",
    patches: [],
    catcher: { by: "search", rule: "permits-dead-head", finds: "L3" },
  },
  {
    id: "queue-forgets-the-living",
    bugs: ["B46"],
    mistake: "a queue is dropped between two requests of its waiters",
    patches: [
      patch("mutex/acquire.lua", "redis.call('PEXPIRE', KEYS[3], 60000)", "redis.call('PEXPIRE', KEYS[3], 700)"),
    ],
    catcher: simulation("mutex", "X3"),
  },
  {
    id: "place-renewed",
    bugs: ["B46"],
    mistake: "a waiter that asks again goes to the end of the queue",
    patches: [],
    catcher: { by: "search", rule: "queue-once", finds: "X3" },
  },
  {
    id: "newest-first",
    bugs: ["B46"],
    mistake: "the newest waiter is next",
    patches: [],
    tampering: "the newest waiter is next",
    catcher: simulation("mutex", "X3"),
  },
  {
    id: "downgrade-wakes-nobody",
    bugs: ["B47"],
    mistake: "a writer that becomes a reader wakes no readers",
    patches: [
      patch("permits/reweigh.lua", "grantHeads()\nreturn {1, tonumber(latest)}", "return {1, tonumber(latest)}"),
    ],
    catcher: test(
      "contract/embedded.test.ts",
      "read-write-lock on embedded a downgrade keeps the token and grants waiting readers, but no writer",
    ),
  },
];

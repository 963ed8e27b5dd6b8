/** The factories of a Holdfast instance on independent servers. Only `redlock` works; the others throw the reason. */

import type { CloseOptions, CloseOutcome, HeldLease } from "../core/closing.js";
import { quote } from "../core/error-messages.js";
import { UnsupportedError } from "../core/errors.js";
import { checkName, lockKeys, show } from "../core/keys.js";
import type { ResolvedOptions } from "../core/options.js";
import { graceOf } from "../holdfast-options.js";
import { withInternals } from "../internals.js";
import { Quorum, type QuorumFacts } from "./quorum.js";
import { Redlock } from "./redlock.js";

/** A factory that throws an UnsupportedError. */
type Refuse = (name: unknown, ...rest: readonly unknown[]) => never;

/** The kinds that need one server. */
type OneServerKind =
  | "mutex"
  | "reentrantMutex"
  | "multiLock"
  | "semaphore"
  | "readWriteLock"
  | "countDownLatch"
  | "barrier"
  | "election";

/** The factories and methods behind `createHoldfast({ redlock })`. */
export interface QuorumFactories extends Readonly<Record<OneServerKind, Refuse>> {
  redlock(name: string, ...rest: readonly unknown[]): Redlock;
  adopt(exported: unknown): Promise<never>;
  pause(name: unknown): Promise<never>;
  resume(name: unknown): Promise<never>;
  held(): readonly HeldLease[];
  close(options?: CloseOptions): Promise<CloseOutcome>;
  [Symbol.asyncDispose](): Promise<void>;
}

const ONE_QUEUE =
  "its queue and its hand-over need one order, which independent servers do not have; use redlock(name)";

/** Creates a quorum with its session, and returns its factories. */
export function quorumFactories(facts: QuorumFacts, defaults: ResolvedOptions): QuorumFactories {
  const quorum = new Quorum(facts);
  const { prefix, clientName, stores } = facts;
  const { session } = quorum;
  const factories: QuorumFactories = {
    redlock(name, ...rest) {
      const extra = rest.find((value) => value !== undefined);
      if (extra !== undefined) {
        throw new TypeError(
          `redlock takes a name and nothing else; pass options to acquire and the other methods; got ${show(extra)}`,
        );
      }
      const { base } = lockKeys(prefix, "redlock", checkName(name));
      return new Redlock(quorum, { name, lock: base, fence: `${base}:fence`, channel: `${base}:released` }, defaults);
    },
    mutex: refuse("mutex", ONE_QUEUE),
    reentrantMutex: refuse("reentrant mutex", ONE_QUEUE),
    multiLock: refuse(
      "multi-lock",
      "two of them could each win a part of the servers for each member, again and again",
    ),
    semaphore: refuse(
      "semaphore",
      "it would grant too often: of two permits on three servers, A and B are granted by the first, B and C by the second, " +
        "A and C by the third, and each of the three has a majority",
    ),
    readWriteLock: refuse("read-write lock", "what it promises there has not been shown to hold"),
    countDownLatch: refuse("latch", "a count is one number, and independent servers each have their own"),
    barrier: refuse(
      "barrier",
      "the number of those who have arrived is one number, and independent servers each have their own",
    ),
    election: refuse("election", "what a leader proclaims needs one place and one order; use redlock(name)"),
    adopt: () =>
      Promise.reject(
        new UnsupportedError(
          "adopt",
          "A lease on several independent servers stays with the Holdfast that acquired it.",
        ),
      ),
    pause: async (name) => cannotPause(name),
    resume: async (name) => cannotPause(name),
    held: () => session.held(),
    close: async (options) => session.close(graceOf(options)),
    async [Symbol.asyncDispose]() {
      await session.close();
    },
  };
  const servers = stores.map(({ store }) => store);
  return withInternals(factories, { session, defaults, prefix, clientName, servers });
}

function refuse(kind: string, why: string): Refuse {
  return (name) => {
    const which = typeof name === "string" ? ` ${quote(name)}` : "";
    throw new UnsupportedError(
      typeof name === "string" ? name : kind,
      `The ${kind}${which} cannot be on several independent servers: ${why}.`,
    );
  };
}

const cannotPause = refuse(
  "pause",
  "it is kept by the one server that grants, and here a majority grants. Hold the lock instead, with renew: false and a " +
    "long leaseMs",
);

/**
 * The `redlock` factory of a Holdfast instance on one server.
 *
 * @throws UnsupportedError  always, after `name` is checked
 */
export function noQuorumHere(name: unknown): never {
  checkName(name);
  throw new UnsupportedError(
    String(name),
    "redlock needs several independent servers, createHoldfast({ redlock: [a, b, c] }); on one server use mutex(name).",
  );
}

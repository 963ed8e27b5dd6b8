/**
 * The factories of a Holdfast instance on independent servers. Only `redlock` works; the others throw an error that
 * explains why.
 */

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
  "its queue needs all requests in one order, which independent servers cannot provide; use redlock(name)";

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
          `redlock takes only a name; pass options to acquire and the other methods; got ${show(extra)}`,
        );
      }
      const { base } = lockKeys(prefix, "redlock", checkName(name));
      return new Redlock(quorum, { name, lock: base, fence: `${base}:fence`, channel: `${base}:released` }, defaults);
    },
    mutex: refuse("mutex", ONE_QUEUE),
    reentrantMutex: refuse("reentrant mutex", ONE_QUEUE),
    multiLock: refuse("multi-lock", "two callers could block each other forever, each with some of the servers"),
    semaphore: refuse("semaphore", "with two permits and three servers, three callers could each get a majority"),
    readWriteLock: refuse("read-write lock", "its guarantees have not been shown to hold there"),
    countDownLatch: refuse("latch", "it needs one count, and each independent server has its own"),
    barrier: refuse("barrier", "it needs one count of its parties, and each independent server has its own"),
    election: refuse("election", "changes to a leader's value must be ordered by a single server; use redlock(name)"),
    adopt: () =>
      Promise.reject(
        new UnsupportedError(
          "adopt",
          "adopt does not work with redlock: a lease on several independent servers stays with the Holdfast that acquired it.",
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

function cannotPause(name: unknown): never {
  throw new UnsupportedError(
    typeof name === "string" ? name : "pause",
    `${show(name)} cannot be paused or resumed on several independent servers. To block other callers, hold the lock with ` +
      "renew: false and a long leaseMs.",
  );
}

/**
 * The `redlock` factory of a Holdfast instance on one server.
 *
 * @throws UnsupportedError  always, after `name` is checked
 */
export function noQuorumHere(name: unknown): never {
  checkName(name);
  throw new UnsupportedError(
    String(name),
    "redlock needs several independent servers: createHoldfast({ redlock: [a, b, c] }). On one server, use mutex(name).",
  );
}

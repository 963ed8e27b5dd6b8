/** A replica of a cluster takes over because it is asked to. */

import { setTimeout as sleep } from "node:timers/promises";

interface Candidate {
  readonly id: string;
  command(...words: (string | number)[]): Promise<unknown>;
}

type Patience = (isSo: () => Promise<boolean>) => Promise<void>;

/** How long nodes may take to agree before they give up, and a little more. */
const AGREEMENT_MS = 6_000;

/** While it is elected, so that votes are kept for a bounded time. */
const NODE_TIMEOUT_MS = 1_000;

/**
 * Redis keeps the votes for a node that long. One that is demoted and asked again before takes over with the old ones,
 * in its old epoch, and the others tell it at once that it may not: for a moment there are two masters, and then the
 * first again.
 */
const VOTES_KEPT_MS = 4 * NODE_TIMEOUT_MS;

/** Elections of one cluster. */
export class Elections {
  readonly #nodeTimeoutMs: number;
  readonly #wonAtMs = new Map<string, number>();

  /** @param nodeTimeoutMs  the usual timeout of the nodes */
  constructor(nodeTimeoutMs: number) {
    this.#nodeTimeoutMs = nodeTimeoutMs;
  }

  /**
   * The replica takes over in agreement with its master, and nothing is lost.
   *
   * @param until  asks again until it is so, or throws
   * @param hasWon  whether the others say so
   */
  async elect(replica: Candidate, until: Patience, hasWon: () => Promise<boolean>): Promise<void> {
    await sleep(Math.max(0, (this.#wonAtMs.get(replica.id) ?? -Infinity) + VOTES_KEPT_MS - performance.now()));
    await replica.command("CONFIG", "SET", "cluster-node-timeout", NODE_TIMEOUT_MS);
    let askedAtMs = -Infinity;
    await until(async () => {
      // The agreement can time out, and then nothing has happened.
      if (performance.now() - askedAtMs > AGREEMENT_MS) {
        askedAtMs = performance.now();
        await replica.command("CLUSTER", "FAILOVER");
      }
      return hasWon();
    });
    this.#wonAtMs.set(replica.id, performance.now());
    await replica.command("CONFIG", "SET", "cluster-node-timeout", this.#nodeTimeoutMs);
  }
}

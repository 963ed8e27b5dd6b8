/** Promotes a replica of a cluster on request. */

import { setTimeout as sleep } from "node:timers/promises";

interface Candidate {
  readonly id: string;
  command(...words: (string | number)[]): Promise<unknown>;
}

type Patience = (isSo: () => Promise<boolean>) => Promise<void>;

/** How long nodes may take to agree before they give up, plus some slack. */
const AGREEMENT_MS = 6_000;

/** The node timeout during an election, which limits how long votes are kept. */
const NODE_TIMEOUT_MS = 1_000;

/**
 * How long Redis keeps the votes for a node. A node that was demoted and is asked again earlier takes over with the
 * old votes, in its old epoch, and the others reject it: for a moment there are two masters, and then the first one
 * again.
 */
const VOTES_KEPT_MS = 4 * NODE_TIMEOUT_MS;

/** The elections of a cluster. */
export class Elections {
  readonly #nodeTimeoutMs: number;
  readonly #wonAtMs = new Map<string, number>();

  /** @param nodeTimeoutMs  the usual timeout of the nodes */
  constructor(nodeTimeoutMs: number) {
    this.#nodeTimeoutMs = nodeTimeoutMs;
  }

  /**
   * Promotes the replica in agreement with its master, without loss.
   *
   * @param until  polls until a condition is true, or throws
   * @param hasWon  whether the other nodes confirm it
   */
  async elect(replica: Candidate, until: Patience, hasWon: () => Promise<boolean>): Promise<void> {
    await sleep(Math.max(0, (this.#wonAtMs.get(replica.id) ?? -Infinity) + VOTES_KEPT_MS - performance.now()));
    await replica.command("CONFIG", "SET", "cluster-node-timeout", NODE_TIMEOUT_MS);
    let askedAtMs = -Infinity;
    await until(async () => {
      // The agreement can time out without any effect.
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

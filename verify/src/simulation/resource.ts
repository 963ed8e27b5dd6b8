/**
 * The resource that the locks protect: it accepts writes with a token, and refuses a write with a lower token than an
 * earlier one.
 *
 * A write, called a letter here, takes time to arrive. Sometimes it arrives after the end of the lease, which is the
 * case that tokens exist for.
 */

import { historyName } from "./draft.js";
import type { Random } from "./random.js";
import type { Recorder } from "./recorder.js";
import type { View } from "./view.js";

/** The environment through which letters travel. */
interface Post {
  readonly random: Random;
  readonly world: {
    readonly nowMs: number;
    readonly recorder: Recorder;
    plan(atMs: number, what: string, happen: () => void): unknown;
  };
}

/** The longest delay of a letter. */
const SLOW_MS = 3_000;

/** The resource that one lock protects. */
export class Resource {
  readonly #name: string;
  readonly #checksTokens: boolean;
  readonly #letters: string[] = [];
  #highest = 0;
  #sequence = 0;
  #arrived = 0;

  /** @param checksTokens  false is a deliberate mistake */
  constructor(lockName: string, checksTokens: boolean) {
    this.#name = `guarded by ${lockName}`;
    this.#checksTokens = checksTokens;
  }

  /** A holder that has checked its lease sends a letter. It is not notified of the arrival. */
  write({ world, random }: Post, { process, lockName, operation, token, grantId = operation.id }: View): void {
    this.#sequence += 1;
    const letter = `${historyName(process)} ${operation.id} ${this.#sequence}`;
    const delayMs = random.chance(0.3) ? random.between(0, SLOW_MS) : random.between(0.05, 2);
    world.plan(world.nowMs + delayMs, `letter ${letter} arrives`, () => {
      this.#arrived += 1;
      const isAccepted = !this.#checksTokens || token >= this.#highest;
      if (isAccepted) this.#letters.push(letter);
      this.#highest = Math.max(this.#highest, token);
      world.recorder.add({
        type: "effect",
        atMs: world.nowMs,
        resource: this.#name,
        sequence: this.#arrived,
        process: historyName(process),
        lockName,
        leaseId: grantId,
        token,
        isAccepted,
        isAcknowledged: isAccepted,
        value: letter,
      });
    });
  }

  /** Records the final contents. */
  finish(recorder: Recorder): void {
    recorder.add({ type: "final-state", resource: this.#name, values: [...this.#letters] });
  }
}

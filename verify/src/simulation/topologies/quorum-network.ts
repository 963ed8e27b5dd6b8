/** The replies that have reached each process of a quorum: a success requires replies of a majority. */
import type { Reply } from "holdfast";
import { Network, outcomeOf } from "../messages.js";
import type { Call } from "../network-host.js";
import type { SimulatedProcess } from "../process.js";

type Word = "granted" | "extended" | "given back";

/**
 * By script: the meaning of a reply. A "not held" reply also counts, because an earlier success reply may have been
 * lost.
 */
const WORDS: ReadonlyMap<string, readonly [outcomes: readonly string[], word: Word]> = new Map([
  ["redlock/acquire", [["granted"], "granted"]],
  ["redlock/extend", [["extended"], "extended"]],
  ["redlock/release", [["released", "unheld"], "given back"]],
]);

/** Counts replies of the servers. */
export class QuorumNetwork extends Network {
  readonly #majority: number;
  /** By meaning and owner: when each server last replied so. */
  readonly #heard = new Map<string, Map<number, number>>();

  constructor(size: number) {
    super();
    this.#majority = Math.floor(size / 2) + 1;
    this.isOrderly = false;
  }

  /** Records a server's reply. @returns whether a majority has now extended a lease */
  heard(server: number, { script, args }: Call, reply: Reply, nowMs: number): boolean {
    const [outcomes, word] = WORDS.get(script.name) ?? [];
    if (word === undefined || outcomes?.includes(outcomeOf(script.replies, reply) ?? "") !== true) return false;
    const key = `${word} ${String(args[script.args.indexOf("owner")])}`;
    const known = this.#heard.get(key) ?? new Map<number, number>();
    this.#heard.set(key, known.set(server, nowMs));
    return word === "extended" && known.size >= this.#majority;
  }

  override wasGranted(_: SimulatedProcess, owner: string): boolean {
    return this.#majorityAt("granted", owner) > Number.NEGATIVE_INFINITY;
  }

  /** When a majority of the servers had replied so, by the latest reply of each. */
  override lastHeard(owner: string, what: "extended" | "given back"): number {
    return this.#majorityAt(what, owner);
  }

  #majorityAt(word: Word, owner: string): number {
    const times = [...(this.#heard.get(`${word} ${owner}`)?.values() ?? [])].sort((a, b) => b - a);
    return times[this.#majority - 1] ?? Number.NEGATIVE_INFINITY;
  }
}

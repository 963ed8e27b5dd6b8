/** What has reached each process of a quorum: a success is one only if a majority of the servers has said so. */
import type { Reply } from "holdfast";
import { Network, outcomeOf } from "../messages.js";
import type { Call } from "../network-host.js";
import type { SimulatedProcess } from "../process.js";

type Word = "granted" | "extended" | "given back";

/** By script: what a server says by that answer. One that holds no longer may have been told before, and its answer lost. */
const WORDS: ReadonlyMap<string, readonly [outcomes: readonly string[], word: Word]> = new Map([
  ["redlock/acquire", [["granted"], "granted"]],
  ["redlock/extend", [["extended"], "extended"]],
  ["redlock/release", [["released", "unheld"], "given back"]],
]);

/** See the file header. */
export class QuorumNetwork extends Network {
  readonly #majority: number;
  /** By word and owner: when each server last said so. */
  readonly #heard = new Map<string, Map<number, number>>();

  constructor(size: number) {
    super();
    this.#majority = Math.floor(size / 2) + 1;
    this.isOrderly = false;
  }

  /** A server has answered the process. @returns whether a lease was extended by it, in that a majority has said so by now */
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

  /** When so many servers had said so that they were a majority, each by its latest word. */
  override lastHeard(owner: string, what: "extended" | "given back"): number {
    return this.#majorityAt(what, owner);
  }

  #majorityAt(word: Word, owner: string): number {
    const times = [...(this.#heard.get(`${word} ${owner}`)?.values() ?? [])].sort((a, b) => b - a);
    return times[this.#majority - 1] ?? Number.NEGATIVE_INFINITY;
  }
}

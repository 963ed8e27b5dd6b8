/**
 * What goes through the doors to the servers of a quorum, claim by claim. As `Trails`, but a claim is granted, renewed
 * or given back only when a majority of the servers has answered so.
 */
import type { Reply, Script, Store } from "holdfast";
import { wrapped } from "../mutations.js";
import type { Refused } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { Trails, unanswered } from "./trails.js";

/** A question that goes to every server, and what they have said to it. */
class Round {
  readonly #majority: number;
  readonly #count: number;
  readonly asked = new Set<number>();
  readonly #said = { yes: 0, no: 0, unknown: 0 };
  readonly ended: Promise<undefined | Refused>;
  #settle: (end: undefined | Refused) => void = () => {};

  constructor(count: number) {
    this.#count = count;
    this.#majority = Math.floor(count / 2) + 1;
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** @returns whether a majority has said yes, by this answer */
  answered(word: "yes" | "no" | "unknown", error?: unknown): boolean {
    this.#said[word] += 1;
    const { yes, no, unknown } = this.#said;
    if (yes >= this.#majority) this.#settle(undefined);
    else if (no >= this.#majority) this.#settle({ outcome: "no", refusal: "not-owner", message: "by a majority" });
    else if (yes + no + unknown === this.#count)
      this.#settle(error === undefined ? { outcome: "info", message: "no majority" } : unanswered(error));
    return word === "yes" && yes === this.#majority;
  }
}

/** What the servers have said to the releases of one claim. */
interface Release {
  readonly held: Set<number>;
  readonly answered: Set<number>;
  /** How often this process had connected again when it sent the first one. */
  readonly after: number;
  /** Whether one was sent whose answer did not come. */
  isOpen: boolean;
}

/** See the file header. */
export class QuorumTrails {
  /** Of all claims, as those who hold see them. */
  readonly trails: Trails = new Trails();
  readonly #count: number;
  /** By claim and by what was asked. */
  readonly #rounds = new Map<string, Round>();
  readonly #releases = new Map<string, Release>();
  #reconnects = 0;

  /** @param count  how many servers there are */
  constructor(count: number) {
    this.#count = count;
  }

  /** The store of one of the servers, with an observer. */
  watch(store: Store, server: number): Store {
    store.onReconnect((connection) => {
      if (connection === "commands") this.#reconnects += 1;
    });
    return wrapped(store, (script, keys, args, timeoutMs) => {
      const answer = (): Promise<Reply> => store.run(script, keys, args, timeoutMs);
      const owner = String(args[script.args.indexOf("owner")] ?? "");
      if (script.args.indexOf("owner") < 0) return answer();
      switch (script.name) {
        case "redlock/acquire":
          return this.#acquire(owner, server, answer);
        case "redlock/extend":
          return this.#extend(owner, server, leaseOf(script, args), answer);
        case "redlock/release":
          return this.#release(owner, server, answer);
        default:
          return answer();
      }
    });
  }

  async #acquire(owner: string, server: number, answer: () => Promise<Reply>): Promise<Reply> {
    const round = this.#round("acquire", owner, server);
    const reply = await answer();
    const isGranted = typeof reply !== "number" && reply[0] === 0;
    if (round.answered(isGranted ? "yes" : "no")) this.trails.of(owner).grantedMs ??= monotonicMs();
    return reply;
  }

  async #extend(owner: string, server: number, leaseMs: number, answer: () => Promise<Reply>): Promise<Reply> {
    const trail = this.trails.of(owner);
    const round = this.#round("extend", owner, server);
    if (round.asked.size === 1) {
      trail.extension = "open";
      trail.onExtension?.(leaseMs, round.ended);
      void round.ended.then((end) => {
        if (end === undefined) trail.extension = "done";
        else trail.extension = end.outcome === "no" ? "refused" : "unknown";
      });
    }
    try {
      const reply = await answer();
      if (round.answered(reply === 1 ? "yes" : "no")) trail.extendedMs = monotonicMs();
      return reply;
    } catch (error) {
      round.answered("unknown", error);
      throw error;
    }
  }

  /**
   * It may take several tries, of which each server counts once. "Not held" says that it was done if an earlier copy may
   * have run, which nothing was answered to.
   */
  async #release(owner: string, server: number, answer: () => Promise<Reply>): Promise<Reply> {
    const trail = this.trails.of(owner);
    const release = kept(this.#releases, owner, () => ({
      held: new Set<number>(),
      answered: new Set<number>(),
      after: this.#reconnects,
      isOpen: false,
    }));
    trail.releasedAfter ??= this.#reconnects;
    try {
      const reply = await answer();
      release.answered.add(server);
      if (typeof reply !== "number" && reply[0] === 1) release.held.add(server);
      const isCopy = release.isOpen || release.after !== this.#reconnects;
      const { size } = isCopy ? release.answered : release.held;
      if (size > this.#count / 2) trail.releasedMs ??= monotonicMs();
      return reply;
    } catch (error) {
      release.isOpen = true;
      throw error;
    }
  }

  /** The round under way; a new one if that server was asked in it already. */
  #round(verb: string, owner: string, server: number): Round {
    const key = `${verb} ${owner}`;
    if (this.#rounds.get(key)?.asked.has(server) === true) this.#rounds.delete(key);
    const round = kept(this.#rounds, key, () => new Round(this.#count));
    round.asked.add(server);
    return round;
  }
}

/** The claims that are forgotten first are the oldest; a client has few at once. */
const REMEMBERED = 5_000;

function kept<Value>(all: Map<string, Value>, key: string, make: () => Value): Value {
  const known = all.get(key) ?? make();
  all.set(key, known);
  const [oldest] = all.keys();
  if (all.size > REMEMBERED && oldest !== undefined) all.delete(oldest);
  return known;
}

function leaseOf(script: Script, args: readonly (string | number)[]): number {
  return Number(args[script.args.indexOf("leaseMs")]);
}

/**
 * Observes the requests to the servers of a quorum, by claim. Like `Trails`, but a claim is granted, renewed or released
 * only when a majority of the servers has confirmed it.
 */
import type { Reply, Script, Store } from "holdfast";
import { wrapped } from "../mutations.js";
import type { Refused } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { Trails, unanswered } from "./trails.js";

/** A request to every server, with their replies. */
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

  /** @returns whether this reply completes a majority of yes */
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

/** The replies of the servers to the releases of one claim. */
interface Release {
  readonly held: Set<number>;
  readonly answered: Set<number>;
  /** The number of reconnections of this process when it sent the first release. */
  readonly after: number;
  /** Whether a release was sent that got no reply. */
  isOpen: boolean;
}

/** The claims of one client on a quorum. */
export class QuorumTrails {
  /** The trails of all claims, as their holders see them. */
  readonly trails: Trails = new Trails();
  readonly #count: number;
  /** The rounds by verb and claim. */
  readonly #rounds = new Map<string, Round>();
  readonly #releases = new Map<string, Release>();
  #reconnects = 0;

  /** @param count  the number of servers */
  constructor(count: number) {
    this.#count = count;
  }

  /** The store of one server, with an observer. */
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
   * A release may take several tries; each server counts once. A reply "not held" confirms the release if an earlier copy
   * that got no reply may have run.
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

  /** The current round; a new one if that server has already been asked in it. */
  #round(verb: string, owner: string, server: number): Round {
    const key = `${verb} ${owner}`;
    if (this.#rounds.get(key)?.asked.has(server) === true) this.#rounds.delete(key);
    const round = kept(this.#rounds, key, () => new Round(this.#count));
    round.asked.add(server);
    return round;
  }
}

/** The number of remembered claims. The oldest are forgotten first; a client has only a few at a time. */
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

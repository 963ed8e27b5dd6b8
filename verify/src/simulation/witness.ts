/** Checks that need the server's state around each script: S3, and what a waiter may rely on. */
import type { HistoryRecord, Outcome, Refusal, Verb } from "../history/index.js";
import { Asks } from "./asks.js";
import { lockOf } from "./lock-of.js";
import type { Call } from "./network.js";
import type { Observer } from "./observer.js";
import type { SimulatedProcess } from "./process.js";

/** Operations that only the holder may perform. If one is refused, it must have changed nothing. */
export const OF_THE_OWNER: ReadonlyMap<string, Verb> = new Map([
  ["mutex/extend", "extend"],
  ["mutex/release", "release"],
  ["election/extend", "extend"],
  ["election/resign", "release"],
  ["permits/extend", "extend"],
  ["permits/release", "release"],
]);

const ASKS: ReadonlySet<string> = new Set(["mutex/acquire"]);

/** The replies of a script to a client that does not hold. */
const REFUSALS: ReadonlySet<string | undefined> = new Set(["unclaimed", "claimed", "forgotten"]);

/** Where it records its observations. */
interface Book<Draft> {
  called(about: {
    readonly process: SimulatedProcess;
    readonly lockName: string;
    readonly verb: Verb;
    readonly owner: string;
  }): Draft;
  ended(draft: Draft, outcome: Outcome, refusal?: Refusal): void;
  add(record: HistoryRecord): void;
}

/** Reads the server's state around each script. */
export class Witness<Draft extends { readonly id: number }> {
  readonly asks: Asks = new Asks();
  readonly observer: Observer;
  readonly #book: Book<Draft>;
  readonly #now: () => number;

  /** @param now  the true time */
  constructor(observer: Observer, book: Book<Draft>, now: () => number) {
    this.observer = observer;
    this.#book = book;
    this.#now = now;
  }

  /** Records that a script has run. */
  ran(process: SimulatedProcess, call: Call, outcome: string | undefined): void {
    this.observer.look();
    if (outcome === "waiting" && ASKS.has(call.script.name)) this.#waits(call);
    if (REFUSALS.has(outcome)) this.#refused(process, call);
  }

  /** Handles a poll of a waiter. What it may rely on is the remaining lease of the holder, whatever the reply says. */
  #waits(call: Call): void {
    const { observer } = this;
    const { endsAtMs } = observer.readings(call).after;
    this.asks.told(String(call.args[0]), this.#now(), endsAtMs === null ? 0 : endsAtMs - observer.nowMs);
  }

  /**
   * S3: records the state before and after a request that the server refused, whichever client sent it and however
   * late.
   */
  #refused(process: SimulatedProcess, call: Call): void {
    const { observer } = this;
    const verb = OF_THE_OWNER.get(call.script.name);
    if (verb === undefined) return;
    const lockName = lockOf(call);
    const draft = this.#book.called({ process, lockName, verb, owner: String(call.args[0]) });
    this.#book.ended(draft, "no", "not-owner");
    const readings = observer.readings(call);
    for (const when of ["before", "after"] as const) {
      const { owner, endsAtMs } = readings[when];
      const expiresAtMs = endsAtMs === null ? null : endsAtMs - observer.nowMs + this.#now();
      this.#book.add({
        type: "observation",
        operationId: draft.id,
        when,
        atMs: this.#now(),
        lockName,
        owner,
        expiresAtMs,
      });
    }
  }
}

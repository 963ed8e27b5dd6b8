/**
 * All callers of one process who want one entry: they ask once, wait once and load at most once at a time.
 *
 * Invariants: a caller that joins while a load runs gets its value only if nothing invalidated the entry meanwhile; a load goes on
 * while anybody here wants it; whoever waits has a deadline of its own, after which one of them loads for all without asking.
 */
import { ClosedError, StoreError } from "../../index.js";
import { type Hold, type Occupant, type Session, SHORTEST_CALL_MS } from "../../internal.js";
import type { CacheOutcome } from "../tracing.js";
import { type CacheCaller, type CallerFacts, Callers } from "./callers.js";
import { type Answer, Inquiry } from "./inquiry.js";
import { failureIn, valueIn } from "./kept.js";
import { Load, type LoadOutcome, type LoadPlace } from "./load.js";
import { AGAIN, ALONE, AT_ONCE, parse } from "./messages.js";
import type { Look } from "./protocol.js";
import { reload } from "./reload.js";
import { Rest } from "./rest.js";
import { Subscriber } from "./subscriber.js";

/** How long it sleeps at most before it asks again: a message can be lost with its connection. */
const RECHECK_MS = 5_000;
/** Where it is not told. */
const POLL_MS = 250;
/** Of those who wait one takes over after a failure; they come one after the other within this time. */
const TAKE_OVER_MS = 100;
const JITTER_MS = 20;

/** See the file header. */
export class Flight<Value> implements Occupant {
  readonly #place: LoadPlace<Value>;
  readonly #session: Session;
  readonly #onLanded: (flight: Flight<Value>) => void;
  readonly #callers = new Callers<Value>((reason) => this.#abandoned(reason));
  readonly #subscriber: Subscriber;
  readonly #rest: Rest<Value>;
  readonly #inquiry: Inquiry;
  #phase: "asking" | "waiting" | "loading" | "over" = "asking";
  #asking: Promise<void> = Promise.resolve();
  #askAgain = false;
  #load: Load<Value> | undefined;
  /** Of the load that is waited for: what is told of older ones is out of date. */
  #awaitedToken = 0;
  #round = 0;
  /** Somebody has invalidated the entry since the present load began. */
  #isOutdated = false;
  #failures = 0;

  /** @param onLanded  called when nobody may join any more @throws ClosedError */
  constructor(place: LoadPlace<Value>, onLanded: (flight: Flight<Value>) => void) {
    this.#place = place;
    this.#session = place.session;
    this.#onLanded = onLanded;
    this.#subscriber = new Subscriber(
      place.protocol,
      (message) => this.#heard(message),
      () => this.#askSoon(),
    );
    this.#rest = new Rest(place.session.runtime, this.#callers, (overdue) => {
      if (overdue === undefined) this.#ask();
      else this.#loadAlone(overdue);
    });
    this.#inquiry = new Inquiry(place, this);
  }

  /** One more caller. The first one makes it ask. */
  join(facts: CallerFacts<Value>): void {
    const isFirst = this.#callers.count === 0;
    this.#callers.add(facts, this.#round);
    if (this.#phase === "waiting") this.#rest.joined(facts.untilMs);
    else if (isFirst && this.#phase === "asking") this.#ask();
  }

  granted(): void {}

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    this.#askSoon();
  }

  async close(): Promise<void> {
    const closed = new ClosedError(this.#place.protocol.name);
    this.#load?.abort(closed);
    if (this.#load === undefined) this.#rejectAll(closed);
    this.#inquiry.end();
    // What it may have been granted by then is given back.
    await this.#asking;
  }

  #abandoned(reason: unknown): void {
    this.#onLanded(this);
    if (this.#load === undefined) this.#end();
    else this.#load.abort(reason);
  }

  /** There is a reason to ask, unless it loads by itself. */
  #askSoon(): void {
    if (this.#phase === "asking") this.#askAgain = true;
    else if (this.#phase === "waiting") this.#ask();
  }

  #ask(): void {
    this.#phase = "asking";
    this.#askAgain = false;
    this.#rest.end();
    this.#asking = this.#look();
  }

  async #look(): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#inquiry.ask(this.#timeoutMs());
    } catch (error) {
      this.#unanswered(error);
      return;
    }
    const { looked } = answer;
    if (this.#phase !== "asking") {
      if (looked.outcome === "granted") await answer.giveBack();
      return;
    }
    const known = valueIn(this.#place, looked.text);
    if (looked.outcome === "granted") this.#begin(answer.begin(looked.token), known);
    else if (known !== undefined) this.#resolveAll(known.value, this.#howFound(looked.outcome));
    else if (looked.outcome === "loading") this.#wait(looked.token, looked.restMs);
    // What another version of the program has written is of no use here, and is left to it.
    else this.#loadAlone();
  }

  /** What was there at the first question was read; what is there later was waited for. */
  #howFound(outcome: Look["outcome"]): CacheOutcome {
    if (this.#awaitedToken > 0 || this.#round > 0) return "joined";
    return outcome === "fresh" ? "fresh" : "stale";
  }

  /** No longer than the most patient caller wants to wait. */
  #timeoutMs(): number {
    const leftMs = Math.max(this.#callers.latestMs - this.#session.runtime.monotonicMs(), SHORTEST_CALL_MS);
    return Math.min(this.#session.commandTimeoutMs, Math.ceil(leftMs));
  }

  #unanswered(error: unknown): void {
    if (this.#phase !== "asking") return;
    if (!(error instanceof StoreError) || this.#place.options.whenUnavailable === "reject") this.#rejectAll(error);
    else this.#renewClaim(() => this.#loadAlone());
  }

  /** Goes on under another id, since the old one may still be granted something. */
  #renewClaim(goOn: () => void): void {
    try {
      this.#inquiry.renew();
    } catch (error) {
      this.#rejectAll(error);
      return;
    }
    goOn();
  }

  #begin(held: Hold, stale: { readonly value: Value } | undefined): void {
    // Whoever was answered has a caller: the last one to leave ends the flight.
    const first = this.#callers.first as CacheCaller<Value>;
    if (stale === undefined) {
      void this.#run(held, first);
      return;
    }
    this.#resolveAll(stale.value, this.#howFound("granted"));
    void reload(this.#place, held, first.facts.load);
  }

  #loadAlone(overdue: CacheCaller<Value> | undefined = this.#callers.first): void {
    if (overdue !== undefined) void this.#run(undefined, overdue);
  }

  async #run(held: Hold | undefined, of: CacheCaller<Value>): Promise<void> {
    this.#phase = "loading";
    this.#rest.end();
    this.#round += 1;
    this.#isOutdated = false;
    const load = new Load(this.#place, held, of.facts.load);
    this.#load = load;
    const outcome = await load.outcome;
    if (outcome.ok) await this.#loaded(load, outcome, of);
    else await this.#failed(load, outcome.error, of);
  }

  async #loaded(
    load: Load<Value>,
    outcome: LoadOutcome<Value> & { readonly ok: true },
    of: CacheCaller<Value>,
  ): Promise<void> {
    const { value } = outcome;
    const round = this.#round;
    const serve = (): void => {
      this.#callers.resolve(of, value, load.isAlone ? "alone" : "loaded");
      this.#callers.resolveOlder(round, value, "joined");
    };
    // Who asked before the load began gets its value whatever becomes of that, and waits for no server that is silent.
    const timer = this.#session.runtime.startTimer(serve, SHORTEST_CALL_MS, true);
    const isKept = await load.keep(value, outcome.isNegative);
    timer.cancel();
    serve();
    if (this.#phase === "over") return;
    this.#load = undefined;
    if (isKept && !this.#isOutdated) this.#resolveAll(value, "joined");
    // Whoever came after the load had begun may have come after the invalidation.
    else this.#goOn(0);
  }

  async #failed(load: Load<Value>, error: unknown, of: CacheCaller<Value>): Promise<void> {
    // Of whom nobody wanted it any more.
    const isAbandoned = this.#callers.count === 0;
    this.#callers.reject(of, error);
    this.#failures += 1;
    const isLast = isAbandoned ? await load.giveUp() : await load.fail(error);
    if (this.#phase === "over") return;
    this.#load = undefined;
    if (isLast === true || this.#failures >= this.#place.options.attemptsMax) this.#rejectAll(error);
    else this.#goOn(this.#session.runtime.random() * TAKE_OVER_MS);
  }

  /** The next attempt, by whoever is left. */
  #goOn(inMs: number): void {
    if (this.#callers.count === 0) this.#end();
    else this.#renewClaim(() => this.#waitFor(inMs));
  }

  /** Somebody else loads it. */
  #wait(token: number, restMs: number): void {
    this.#awaitedToken = token;
    this.#subscriber.open();
    if (this.#askAgain) {
      this.#ask();
      return;
    }
    const longestMs = this.#subscriber.isOpen ? RECHECK_MS : POLL_MS;
    this.#waitFor(Math.min(restMs, longestMs) + this.#session.runtime.random() * JITTER_MS);
  }

  #waitFor(ms: number): void {
    this.#phase = "waiting";
    this.#rest.begin(ms);
  }

  #heard(message: string): void {
    const told = parse(message);
    // Of a load that asked nobody, only this says so; any other finds out when it keeps what it has.
    if (message === AT_ONCE && this.#load?.isAlone === true) this.#isOutdated = true;
    // A lease that was granted here speaks for itself.
    const listens = this.#phase !== "over" && (this.#load === undefined || this.#load.isAlone);
    if (!listens || (told !== undefined && told.token < this.#awaitedToken)) return;
    if (told?.sort === "filled") {
      const known = valueIn(this.#place, told.text);
      if (known !== undefined) this.#resolveAll(known.value, "joined");
      else this.#askSoon();
    } else if (told?.sort === "failed") {
      if (this.#load === undefined) this.#rejectAll(failureIn(this.#place, told.text));
    } else if (message === ALONE && this.#phase === "waiting") {
      this.#loadAlone();
    } else if (message === AGAIN && this.#phase === "waiting") {
      this.#waitFor(this.#session.runtime.random() * TAKE_OVER_MS);
    } else {
      this.#askSoon();
    }
  }

  #resolveAll(value: Value, outcome: CacheOutcome): void {
    this.#end();
    this.#callers.resolveOlder(Infinity, value, outcome);
  }

  #rejectAll(error: unknown): void {
    this.#end();
    this.#callers.rejectAll(error);
  }

  /** Nobody joins it any more, and it sends nothing. */
  #end(): void {
    this.#phase = "over";
    this.#rest.end();
    this.#subscriber.close();
    this.#inquiry.end();
    this.#onLanded(this);
    // A load alone whose value came from elsewhere meanwhile.
    this.#load?.abort(new Error("the value is here"));
  }
}

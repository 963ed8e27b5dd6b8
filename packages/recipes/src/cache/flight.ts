/**
 * All callers in one process that want the same entry. They share one query, one wait and at most one load at a time.
 *
 * Invariants:
 * - A caller that joins during a load gets its value only if the entry was not invalidated meanwhile.
 * - A load continues while any caller here waits for it.
 * - Each waiting caller has its own deadline. When the deadline passes, that caller loads the value for all callers
 *   here, without asking the server.
 */
import { ClosedError, StoreError } from "holdfast";
import { type Hold, type Occupant, type Session, SHORTEST_CALL_MS } from "holdfast/internal";
import type { CacheOutcome } from "../tracing.js";
import { type CacheCaller, type CallerFacts, Callers } from "./callers.js";
import { type Answer, Inquiry } from "./inquiry.js";
import { failureIn, valueIn } from "./kept.js";
import { Load, type LoadOutcome, type LoadPlace } from "./load.js";
import { AGAIN, ALONE, AT_ONCE, parse } from "./messages.js";
import type { CacheReply } from "./protocol.js";
import { QueryDelay } from "./query-delay.js";
import { reload } from "./reload.js";
import { Subscriber } from "./subscriber.js";

/**
 * Longest time between two queries while subscribed, in milliseconds. Queries are repeated because a message can be
 * lost with its connection.
 */
const RECHECK_MS = 5_000;
/** Longest time between two queries without a subscription, in milliseconds. */
const POLL_MS = 250;
/**
 * Longest random delay before a waiting process takes over a failed load, in milliseconds. It keeps the processes from
 * trying at the same time.
 */
const TAKE_OVER_MS = 100;
const JITTER_MS = 20;

/** All callers in one process that want the same entry. */
export class Flight<Value> implements Occupant {
  readonly #place: LoadPlace<Value>;
  readonly #session: Session;
  readonly #onLanded: (flight: Flight<Value>) => void;
  readonly #callers = new Callers<Value>((reason) => this.#abandoned(reason));
  readonly #subscriber: Subscriber;
  readonly #rest: QueryDelay<Value>;
  readonly #inquiry: Inquiry;
  #phase: "asking" | "waiting" | "loading" | "over" = "asking";
  #asking: Promise<void> = Promise.resolve();
  #askAgain = false;
  #load: Load<Value> | undefined;
  /** Token of the load that this flight waits for. Messages about older loads are ignored. */
  #awaitedToken = 0;
  #round = 0;
  /** Whether the entry was invalidated since the current load began. */
  #isOutdated = false;
  #failures = 0;

  /** @param onLanded  called when no more callers can join @throws ClosedError */
  constructor(place: LoadPlace<Value>, onLanded: (flight: Flight<Value>) => void) {
    this.#place = place;
    this.#session = place.session;
    this.#onLanded = onLanded;
    this.#subscriber = new Subscriber(
      place.protocol,
      (message) => this.#heard(message),
      () => this.#askSoon(),
    );
    this.#rest = new QueryDelay(place.session.runtime, this.#callers, (overdue) => {
      if (overdue === undefined) this.#ask();
      else this.#loadAlone(overdue);
    });
    this.#inquiry = new Inquiry(place, this);
  }

  /** Adds a caller. The first one starts the query. */
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
    // If the query in progress is granted the load, `#inquire` releases it.
    await this.#asking;
  }

  #abandoned(reason: unknown): void {
    this.#onLanded(this);
    if (this.#load === undefined) this.#end();
    else this.#load.abort(reason);
  }

  /** Queries the entry again, unless this flight is loading or over. */
  #askSoon(): void {
    if (this.#phase === "asking") this.#askAgain = true;
    else if (this.#phase === "waiting") this.#ask();
  }

  #ask(): void {
    this.#phase = "asking";
    this.#askAgain = false;
    this.#rest.end();
    this.#asking = this.#inquire();
  }

  async #inquire(): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#inquiry.ask(this.#timeoutMs());
    } catch (error) {
      this.#unanswered(error);
      return;
    }
    const { reply } = answer;
    if (this.#phase !== "asking") {
      if (reply.outcome === "granted") await answer.giveBack();
      return;
    }
    const known = valueIn(this.#place, reply.text);
    if (reply.outcome === "granted") this.#begin(answer.begin(reply.token), known);
    else if (known !== undefined) this.#resolveAll(known.value, this.#howFound(reply.outcome));
    else if (reply.outcome === "loading") this.#wait(reply.token, reply.restMs);
    // The value comes from another version of the program and cannot be decoded here. Leave it for that version.
    else this.#loadAlone();
  }

  /**
   * A value found by the first query was in the cache. A value found later came from a load that this flight waited
   * for.
   */
  #howFound(outcome: CacheReply["outcome"]): CacheOutcome {
    if (this.#awaitedToken > 0 || this.#round > 0) return "joined";
    return outcome === "fresh" ? "fresh" : "stale";
  }

  /** Timeout of a query in milliseconds. Limited by the latest deadline of the callers. */
  #timeoutMs(): number {
    const leftMs = Math.max(this.#callers.latestMs - this.#session.runtime.monotonicMs(), SHORTEST_CALL_MS);
    return Math.min(this.#session.commandTimeoutMs, Math.ceil(leftMs));
  }

  #unanswered(error: unknown): void {
    if (this.#phase !== "asking") return;
    if (!(error instanceof StoreError) || this.#place.options.whenUnavailable === "reject") this.#rejectAll(error);
    else this.#renewClaim(() => this.#loadAlone());
  }

  /** Continues with a new owner id, because a late copy of a request with the old one may still be granted the load. */
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
    // There is at least one caller here, because the flight ends when the last one leaves.
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
    // Callers that asked before the load began get its value even if it is not stored. The timer serves them if the
    // server does not reply soon.
    const timer = this.#session.runtime.startTimer(serve, SHORTEST_CALL_MS, true);
    const isKept = await load.keep(value, outcome.isNegative);
    timer.cancel();
    serve();
    if (this.#phase === "over") return;
    this.#load = undefined;
    if (isKept && !this.#isOutdated) this.#resolveAll(value, "joined");
    // Callers that joined after the load began may have joined after the invalidation, so they need a new value.
    else this.#goOn(0);
  }

  async #failed(load: Load<Value>, error: unknown, of: CacheCaller<Value>): Promise<void> {
    // If no caller is left, the loader was aborted. The server does not count that as a failure.
    const isAbandoned = this.#callers.count === 0;
    this.#callers.reject(of, error);
    this.#failures += 1;
    const isLast = isAbandoned ? await load.giveUp() : await load.fail(error);
    if (this.#phase === "over") return;
    this.#load = undefined;
    if (isLast === true || this.#failures >= this.#place.options.attemptsMax) this.#rejectAll(error);
    else this.#goOn(this.#session.runtime.random() * TAKE_OVER_MS);
  }

  /** Starts the next attempt after `inMs` milliseconds if callers remain; ends the flight otherwise. */
  #goOn(inMs: number): void {
    if (this.#callers.count === 0) this.#end();
    else this.#renewClaim(() => this.#waitFor(inMs));
  }

  /** Waits for a load in another process. */
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
    const news = parse(message);
    // A load without a lease learns of an invalidation only from this message. A load with a lease learns of it when it
    // stores its value.
    if (message === AT_ONCE && this.#load?.isAlone === true) this.#isOutdated = true;
    // A load under a lease ignores messages, because the reply to its own request is decisive.
    const listens = this.#phase !== "over" && (this.#load === undefined || this.#load.isAlone);
    if (!listens || (news !== undefined && news.token < this.#awaitedToken)) return;
    if (news?.sort === "filled") {
      const known = valueIn(this.#place, news.text);
      if (known !== undefined) this.#resolveAll(known.value, "joined");
      else this.#askSoon();
    } else if (news?.sort === "failed") {
      if (this.#load === undefined) this.#rejectAll(failureIn(this.#place, news.text));
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

  /** Ends the flight: no more callers can join, and it sends no more queries. */
  #end(): void {
    this.#phase = "over";
    this.#rest.end();
    this.#subscriber.close();
    this.#inquiry.end();
    this.#onLanded(this);
    // Stops a load without a lease if the value has arrived from elsewhere.
    this.#load?.abort(new Error("the value has arrived from another process"));
  }
}

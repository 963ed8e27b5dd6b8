/**
 * Turns the events of locks into measurements, for any metrics library.
 *
 * It covers all Holdfasts of this process. A multi-lock is measured through its members.
 */
import type {
  AcquireEvent,
  GrantEvent,
  LockEvent,
  LostEvent,
  ReleaseEvent,
  RenewEvent,
  UngrantedEvent,
  WaitEvent,
} from "holdfast";
import { type CommandEvent, idOf } from "holdfast/internal";
import { COUNTERS, type CounterName, type GaugeName } from "./definitions.js";
import { errorTypeOf } from "./error-type.js";
import { type GroupOptions, Groups } from "./groups.js";
import { listen } from "./listening.js";
import { onceOutcome } from "./once-outcome.js";
import { OpenCalls } from "./open-calls.js";
import type { CacheEvent, RequestEvent, RunEvent } from "./other-events.js";
import type { Labels, Sink } from "./sink.js";

interface Held {
  readonly labels: Labels;
  readonly sinceMs: number;
  readonly permits: number;
  /** The number of leases that share the hold, as with a reentrant mutex. */
  leases: number;
  isLate: boolean;
}

const MULTI_LOCK = "multi-lock";
const LOST_IDS_MAX = 1_000;
const OF_EVERY_LOCK: readonly CounterName[] = ["acquisitions", "renewals", "lost", "releases"];
const OF_EVERY_RUN: readonly CounterName[] = ["runsEnded", "runsSkipped"];

/** Turns the events of all locks of this process into measurements. */
export class LockMeter {
  /** Unsubscribes from the events. The sink keeps everything recorded so far. */
  readonly stop: () => void;
  readonly #sink: Sink;
  readonly #groups: Groups;
  /** One object for each set of labels, so that labels can be map keys. */
  readonly #labels = new Map<string, Labels>();
  /** The keys of `#labelsBeside` (a counter and a group) whose zeros were already reported. */
  readonly #shown = new Set<string>();
  readonly #calls = new OpenCalls<Labels>(() => {});
  readonly #held = new Map<string, Held>();
  readonly #limits = new Map<Labels, number>();
  /** Ids of the latest lost holds. Their holders may still release them, but need not. */
  readonly #lostIds = new Set<string>();

  /** Subscribes to the events immediately. @throws TypeError, RangeError  invalid option */
  constructor(sink: Sink, options: GroupOptions) {
    this.#sink = sink;
    this.#groups = new Groups(options);
    // Subscribes to the starts of acquire calls last, so that the meter sees the end of every call whose start it has
    // seen.
    this.stop = listen({
      "holdfast:grant": unlessMulti((event: GrantEvent) => this.#granted(event)),
      "holdfast:ungranted": unlessMulti((event: UngrantedEvent) => this.#ungranted(event)),
      "holdfast:lost": unlessMulti((event: LostEvent) => this.#lost(event)),
      "holdfast:release": unlessMulti((event: ReleaseEvent) => this.#released(event)),
      "holdfast:renew": unlessMulti((event: RenewEvent) => this.#renewed(event)),
      "holdfast:wait": unlessMulti((event: WaitEvent) => this.#calls.wait(event)),
      "holdfast:acquire": unlessMulti((event: AcquireEvent) => this.#calls.begin(event, this.#labelsOf(event))),
      // Reports zeros at the start of a run, because a counter that begins above zero does not appear to have risen.
      "holdfast:run:started": (event: RunEvent) => void this.#runLabels(event),
      "holdfast:run:ended": (event: RunEvent) => this.#run("runsEnded", event, event.outcome),
      "holdfast:run:skipped": (event: RunEvent) => this.#run("runsSkipped", event, event.reason),
      "holdfast:idempotency": ({ method, route, outcome }: RequestEvent) =>
        this.#beside("requests", REQUEST, `${method} ${route}`, outcome),
      "tracing:holdfast:cache:start": ({ kind, cacheName }: CacheEvent) =>
        void this.#labelsBeside("cacheGets", kind, cacheName),
      "tracing:holdfast:cache:asyncEnd": ({ kind, cacheName, outcome }: CacheEvent) =>
        this.#beside("cacheGets", kind, cacheName, outcome),
      "holdfast:command": ({ script, durationMs, error, server }: CommandEvent) =>
        sink.command(
          { script, server, errorType: error === undefined ? undefined : errorTypeOf(error) },
          durationMs / 1_000,
        ),
    });
  }

  /** Returns the current values of a gauge: one for each group, kind and mode seen so far. */
  read(gauge: GaugeName): Iterable<readonly [Labels, number]> {
    const values = new Map([...this.#labels.values()].map((labels) => [labels, 0]));
    const change = (labels: Labels, to: (value: number) => number): void => {
      values.set(labels, to(values.get(labels) ?? 0));
    };
    if (gauge === "permitsLimit") return this.#limits;
    if (gauge === "waiting") {
      for (const { value, isWaiting } of this.#calls.open()) if (isWaiting) change(value, (count) => count + 1);
    } else {
      const nowMs = performance.now();
      for (const { labels, sinceMs, permits } of this.#held.values()) {
        if (gauge === "held") change(labels, (count) => count + 1);
        else if (gauge === "oldest") change(labels, (most) => Math.max(most, (nowMs - sinceMs) / 1_000));
        else if (gauge === "permitsUsed") change(labels, (count) => count + permits);
        else change(labels, () => 1);
      }
    }
    const only = gauge === "leaderActive" ? ELECTION : gauge === "permitsUsed" ? SEMAPHORE : undefined;
    return only === undefined ? values : [...values].filter(([{ kind }]) => kind === only);
  }

  #granted(event: GrantEvent): void {
    const labels = this.#labelsOf(event);
    this.#ended(event.call, labels, event.waitedMs, "granted");
    if (event.kind === ELECTION) this.#sink.add("leaderTransitions", labels, 1);
    if (event.kind === ONCE) this.#sink.add("once", labels, 1, "executed");
    const { taken = 0, limit = 0 } = event.permits ?? {};
    if (event.kind === SEMAPHORE) this.#limits.set(labels, Math.max(limit, this.#limits.get(labels) ?? 0));
    const id = idOf(event);
    const held = this.#held.get(id);
    const sinceMs = performance.now();
    if (held === undefined) this.#held.set(id, { labels, sinceMs, permits: taken, leases: 1, isLate: false });
    else held.leases += 1;
  }

  #ungranted(event: UngrantedEvent): void {
    const labels = this.#labelsOf(event);
    const hasWaited = this.#ended(event.call, labels, event.waitedMs, event.outcome);
    if (event.kind !== ONCE) return;
    const outcome = onceOutcome(event, hasWaited);
    if (outcome !== undefined) this.#sink.add("once", labels, 1, outcome);
  }

  /** Records the end of an acquire call. @returns whether the call waited */
  #ended(call: object, labels: Labels, waitedMs: number, outcome: string): boolean {
    const isWaiting = this.#calls.end(call)?.isWaiting === true;
    const seconds = waitedMs / 1_000;
    this.#sink.add("acquisitions", labels, 1, outcome);
    this.#sink.record("acquire", labels, seconds, outcome);
    if (isWaiting) this.#sink.record("wait", labels, seconds, outcome);
    return isWaiting;
  }

  #renewed(event: RenewEvent): void {
    const held = this.#held.get(idOf(event));
    const isLate = event.error !== undefined;
    if (held !== undefined) held.isLate = isLate;
    this.#sink.add("renewals", this.#labelsOf(event), 1, isLate ? "retried" : "renewed");
  }

  #lost(event: LostEvent): void {
    const labels = this.#labelsOf(event);
    const id = idOf(event);
    const held = this.#held.get(id);
    this.#held.delete(id);
    this.#lostIds.add(id);
    const [oldest] = this.#lostIds;
    if (oldest !== undefined && this.#lostIds.size > LOST_IDS_MAX) this.#lostIds.delete(oldest);
    // Closing the Holdfast released the lease, so it does not count as lost.
    const isClosed = event.reason === "closed";
    if (held !== undefined) this.#recordHold(held, isClosed ? "closed" : "lost");
    if (isClosed) return;
    this.#sink.add("lost", labels, 1, event.reason);
    if (held?.isLate === true) this.#sink.add("renewals", labels, 1, "failed");
  }

  #released(event: ReleaseEvent): void {
    const labels = this.#labelsOf(event);
    const held = this.#held.get(idOf(event));
    this.#sink.add("releases", labels, 1, event.outcome);
    if (held === undefined) {
      // A lost hold was already recorded when it was lost. Any other unknown hold was taken over from another process,
      // or granted before the meter started.
      if (this.#lostIds.delete(idOf(event))) return;
      if (event.outcome === "released") this.#sink.record("hold", labels, event.heldMs / 1_000, event.outcome);
      return;
    }
    held.leases -= 1;
    if (held.leases > 0) return;
    this.#held.delete(idOf(event));
    this.#recordHold(held, event.outcome);
  }

  #recordHold({ labels, sinceMs }: Held, outcome: string): void {
    this.#sink.record("hold", labels, (performance.now() - sinceMs) / 1_000, outcome);
  }

  #run(counter: CounterName, event: RunEvent, value: string | undefined): void {
    this.#sink.add(counter, this.#runLabels(event), 1, value);
  }

  #runLabels(event: RunEvent): Labels {
    const labels = this.#labelsOf(event);
    for (const counter of OF_EVERY_RUN) this.#showZeros(counter, labels);
    return labels;
  }

  /** Counts an event of something that is not a lock, and therefore does not appear in the gauges. */
  #beside(counter: CounterName, kind: string, name: string, outcome: string | undefined): void {
    this.#sink.add(counter, this.#labelsBeside(counter, kind, name), 1, outcome);
  }

  #labelsBeside(counter: CounterName, kind: string, name: string): Labels {
    const labels = { group: this.#groups.of(name), kind };
    const key = `${counter} ${labels.group}`;
    if (!this.#shown.has(key)) this.#showZeros(counter, labels);
    this.#shown.add(key);
    return labels;
  }

  #labelsOf({ kind, lockName, mode }: Pick<LockEvent, "kind" | "lockName" | "mode">): Labels {
    const group = this.#groups.of(lockName);
    const key = `${kind} ${mode ?? ""} ${group}`;
    const known = this.#labels.get(key);
    if (known !== undefined) return known;
    const labels: Labels = mode === undefined ? { group, kind } : { group, kind, mode };
    this.#labels.set(key, labels);
    for (const counter of OF_EVERY_LOCK) this.#showZeros(counter, labels);
    if (kind === ONCE) this.#showZeros("once", labels);
    if (kind === ELECTION) this.#sink.add("leaderTransitions", labels, 0);
    return labels;
  }

  #showZeros(counter: CounterName, labels: Labels): void {
    for (const value of COUNTERS[counter].zeros) this.#sink.add(counter, labels, 0, value);
  }
}

const ELECTION = "election";
const ONCE = "once";
const SEMAPHORE = "semaphore";
const REQUEST = "http";

function unlessMulti<Event extends LockEvent>(handle: (event: Event) => void): (event: Event) => void {
  return (event) => {
    if (event.kind !== MULTI_LOCK) handle(event);
  };
}

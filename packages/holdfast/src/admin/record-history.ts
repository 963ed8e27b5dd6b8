/**
 * Records the history of the locks that this process holds. It subscribes to the diagnostics channels, and writes the
 * events in batches, in separate requests.
 *
 * Invariants: recording creates one small object per acquire, and adds no request to it. A failure to record never
 * affects a lock.
 */
import type { Channel } from "node:diagnostics_channel";
import { hostname } from "node:os";
import { pid } from "node:process";
import type {
  ForcedEvent,
  GrantEvent,
  LockEvent,
  LostEvent,
  PauseEvent,
  ReleaseEvent,
  ResumeEvent,
} from "../core/events.js";
import { channels, type DeedEvent, idOf } from "../core/events.js";
import { show } from "../core/keys.js";
import { checkWhole } from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { checkKeep, type HistoryEvent, type Keep, type KeepOptions } from "./history.js";
import { Outbox } from "./outbox.js";
import { type Place, placeOf } from "./place.js";

export type { HistoryTroubleEvent } from "./outbox.js";

/** Options of `recordHistory`. */
export interface RecordOptions extends KeepOptions {
  /** Returns whether to record a name. It must be fast because it is called during acquires. @default all names */
  readonly names?: ((name: string) => boolean) | undefined;
  /**
   * How long to collect events before they are written together. A longer time needs fewer requests. A hold that is
   * shorter than this time is written as one event instead of two. With a shorter time, fewer events are lost if the
   * process is killed. Whole milliseconds, 10 to 60,000.
   * @default 1_000
   */
  readonly everyMs?: number | undefined;
}

/** Records the history until you stop it. */
export interface HistoryRecorder extends AsyncDisposable {
  /** The number of events written. */
  readonly appended: number;
  /**
   * The number of events dropped because too many were waiting, or because the server refused them too often or did not
   * reply before `stop`.
   */
  readonly dropped: number;
  /** Writes the waiting events. Never rejects. */
  flush(): Promise<void>;
  /**
   * Writes the waiting events and stops recording. Call it before `holdfast.close()`. A second call waits for the
   * first. Never rejects.
   */
  stop(): Promise<void>;
}

/** Maximum number of ended holds, and of open holds, to remember. The oldest are forgotten first. */
const REMEMBERED = 1_000;
const MOST_OPEN = 100_000;

/**
 * Starts to record the history of the locks of this Holdfast: the grants, and how each hold ended. It also records the
 * force-releases, pauses and resumes of this Holdfast. You can add further events with `appendHistory`.
 *
 * Stop the recorder before you close the Holdfast. Otherwise the events of the last `everyMs` are lost.
 *
 * @throws TypeError, RangeError  invalid option
 * @throws ClosedError  this Holdfast was closed
 */
export function recordHistory(holdfast: Holdfast, options: RecordOptions = {}): HistoryRecorder {
  const {
    names = () => true,
    everyMs = 1_000,
    ...kept
  } = checkKnown(options, ["names", "everyMs", "maxEntries", "keepMs"]);
  if (typeof names !== "function")
    throw new TypeError(`names must be a function that takes a name; got ${show(names)}`);
  checkWhole("everyMs", everyMs, 10, 60_000);
  return new Recorder(placeOf(holdfast), names, everyMs, checkKeep(kept));
}

interface Open {
  /** The number of leases that share the hold, as with a reentrant mutex. */
  leases: number;
  readonly grantedAtMonotonicMs: number;
}

class Recorder implements HistoryRecorder {
  readonly #place: Place;
  readonly #names: (name: string) => boolean;
  readonly #outbox: Outbox;
  readonly #open = new Map<string, Open>();
  readonly #ended = new Set<string>();
  readonly #unsubscribe: (() => void)[] = [];
  #stopping: Promise<void> | undefined;

  constructor(place: Place, names: (name: string) => boolean, everyMs: number, keep: Keep) {
    this.#place = place;
    this.#names = names;
    this.#outbox = new Outbox(place, everyMs, keep);
    this.#listen(channels.grant, (event: GrantEvent) => this.#granted(event));
    this.#listen(channels.release, (event: ReleaseEvent) => this.#released(event));
    this.#listen(channels.lost, (event: LostEvent) => this.#lost(event));
    this.#listen(channels.forced, (event: ForcedEvent) => this.#forced(event));
    this.#listen(channels.pause, (event: PauseEvent) => this.#paused(event));
    this.#listen(channels.resume, (event: ResumeEvent) => this.#resumed(event));
  }

  get appended(): number {
    return this.#outbox.appended;
  }

  get dropped(): number {
    return this.#outbox.dropped;
  }

  flush(): Promise<void> {
    return this.#outbox.flush();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await this.#outbox.stop();
  }

  #listen<Event extends LockEvent>(on: Channel, handle: (event: Event) => void): void {
    const { session } = this.#place;
    const listener = (message: unknown): void => {
      const event = message as Event; // what that channel publishes
      // Catch all errors, because an error thrown here would end the process.
      try {
        const { clientId } = event as Partial<DeedEvent>;
        const isOurs = clientId === undefined ? session.isOwn(event.owner) : clientId === session.clientId;
        if (isOurs && event.kind !== "multi-lock" && this.#names(event.lockName)) handle(event);
      } catch (error) {
        this.#outbox.drop(event.lockName, 1, error);
      }
    };
    on.subscribe(listener);
    this.#unsubscribe.push(() => on.unsubscribe(listener));
  }

  #granted(event: GrantEvent): void {
    const hold = idOf(event);
    const open = this.#open.get(hold);
    if (open !== undefined) {
      open.leases += 1;
      return;
    }
    this.#open.set(hold, { leases: 1, grantedAtMonotonicMs: this.#nowMs() });
    forgetOldest(this.#open, MOST_OPEN);
    this.#outbox.add(
      { ...this.#about(event), what: "granted", key: event.key, waitedMs: Math.round(event.waitedMs) },
      hold,
    );
  }

  #released(event: ReleaseEvent): void {
    // The hold continues in another process.
    if (event.outcome === "handed-over") return;
    const open = this.#open.get(idOf(event));
    if (open !== undefined && open.leases > 1) {
      open.leases -= 1;
      return;
    }
    const heldMs = Math.round(event.heldMs);
    if (event.outcome === "released") this.#end(event, { what: "released", heldMs });
    else if (event.outcome === "lost") this.#end(event, { what: "lost", heldMs });
    else if (event.outcome === "expired-unclaimed") {
      this.#end(event, {
        what: "expired",
        heldMs,
        reason: "released too late, but not granted to another holder in the meantime",
      });
    } else this.#end(event, { what: "released", heldMs, reason: "outcome unknown" });
  }

  #lost(event: LostEvent): void {
    const open = this.#open.get(idOf(event));
    const heldMs = open === undefined ? {} : { heldMs: Math.round(this.#nowMs() - open.grantedAtMonotonicMs) };
    // The holder is asked to stop, but the hold has not ended.
    if (event.reason === "closing") return;
    if (event.reason === "force-released") this.#end(event, { what: "forced", ...event.forced, ...heldMs });
    else if (event.reason === "closed") this.#end(event, { what: "released", reason: "closed", ...heldMs });
    else this.#end(event, { what: "lost", reason: event.reason, ...heldMs });
  }

  #forced({ kind, lockName: name, owner, token, forced }: ForcedEvent): void {
    this.#outbox.add({
      kind,
      name,
      what: "forced",
      owner: owner || undefined,
      token,
      ...forced,
      id: `forced ${owner}`,
    });
  }

  #paused({ kind, lockName: name, key, pause: { by, label, untilAtMs, owner } }: PauseEvent): void {
    this.#outbox.add({ kind, name, key, what: "paused", by, label, untilAtMs, id: `paused ${owner}` });
  }

  #resumed({ kind, lockName: name, key, pause: { label, owner }, by, pausedForMs }: ResumeEvent): void {
    this.#outbox.add({ kind, name, key, what: "resumed", by, label, heldMs: pausedForMs, id: `resumed ${owner}` });
  }

  /** Records the end of a hold, unless it was already recorded. */
  #end(
    event: LockEvent & { readonly token: number },
    end: Pick<HistoryEvent, "what" | "heldMs" | "reason" | "by">,
  ): void {
    const hold = idOf(event);
    this.#open.delete(hold);
    if (this.#ended.has(hold)) return;
    this.#ended.add(hold);
    forgetOldest(this.#ended, REMEMBERED);
    // If the event for the start of the hold has not been written yet, replace it with one event for start and end.
    const known = this.#outbox.takeBack(event.lockName, hold) ?? this.#about(event);
    // Use the latest token, because a force-release contains that token.
    this.#outbox.add({ ...known, token: event.token, ...end }, hold);
  }

  #about({ kind, lockName, owner, token }: LockEvent & { readonly token: number }): Omit<HistoryEvent, "what"> {
    const here = { host: hostname(), pid, clientName: this.#place.clientName || undefined };
    return { kind, name: lockName, owner, token, label: parseOwner(owner)?.label, ...here };
  }

  #nowMs(): number {
    return this.#place.session.runtime.monotonicMs();
  }
}

function forgetOldest(known: Map<string, unknown> | Set<string>, most: number): void {
  if (known.size <= most) return;
  const [oldest] = known.keys();
  if (oldest !== undefined) known.delete(oldest);
}

/** `top` on a terminal: reads keys, and redraws after each sample and each key. */

import { plain } from "@holdfast/console/text";
import { formatMs, sleep } from "../../frame/durations.js";
import { EXIT } from "../../frame/exit-codes.js";
import { failureOf } from "../../frame/failures.js";
import { paintFor, table } from "../../frame/output.js";
import type { Call } from "../../frame/verb.js";
import { goneCount } from "../../listing/gone.js";
import { missingText } from "../../listing/missing.js";
import { fitted } from "../../live/clip.js";
import { type Interruption, listenForSignals } from "../../live/interruption.js";
import { type Key, readKeys } from "../../live/keyboard.js";
import { Screen } from "../../live/screen.js";
import { formatInstant } from "../../text/instants.js";
import { COLUMNS, hottest, ORDERS, type Order, partialNote } from "./list.js";
import type { HotLock, Sampler, Snapshot } from "./sampler.js";

const LONGEST_FILTER = 100;

/** The live view. */
export class LiveTop {
  readonly #call: Call;
  readonly #sampler: Sampler;
  readonly #intervalMs: number;
  readonly #rows: number | undefined;
  readonly #screen: Screen;
  #snapshot: Snapshot | undefined;
  /** The locks of the last sample that are shown, with their history. */
  #shown: readonly HotLock[] = [];
  #trouble = "";
  #order: Order = "waiters";
  #filter = "";
  #isTyping = false;
  #isFrozen = false;

  constructor(call: Call, sampler: Sampler, { intervalMs, rows }: { intervalMs: number; rows: number | undefined }) {
    this.#call = call;
    this.#sampler = sampler;
    this.#intervalMs = intervalMs;
    this.#rows = rows;
    this.#screen = new Screen(call.streams.stdout, () => void this.#choose());
  }

  /** Shows the view until `q` or a signal. @returns the exit code. @throws the error from the first sample */
  async run(): Promise<number> {
    await this.#sample();
    const interruption = listenForSignals();
    const end = (): void => interruption.end();
    const stopKeys = readKeys(this.#call.streams.stdin, (key) => this.#key(key, interruption), end);
    this.#screen.open();
    try {
      this.#draw();
      while (!interruption.signal.aborted) {
        await sleep(this.#intervalMs, interruption.signal);
        if (this.#isFrozen || interruption.signal.aborted) continue;
        await this.#sampleAgain();
        this.#draw();
      }
      return interruption.exitCode();
    } finally {
      this.#screen.close();
      stopKeys();
      interruption.stop();
    }
  }

  async #sample(): Promise<void> {
    this.#snapshot = await this.#sampler.sample();
    await this.#choose();
    this.#trouble = "";
  }

  async #sampleAgain(): Promise<void> {
    try {
      await this.#sample();
    } catch (error) {
      const failure = failureOf(error);
      if (failure.code !== EXIT.unreachable) throw error;
      this.#trouble = plain(failure.message);
    }
  }

  /** Selects the locks of the last sample that fit on the screen, and then reads their history. */
  async #choose(): Promise<void> {
    const fits = Math.max(1, this.#screen.rows - 3 - this.#notes().length);
    const count = Math.min(this.#rows ?? fits, fits);
    const chosen = hottest(this.#snapshot?.locks ?? [], this.#order, this.#filter).slice(0, count);
    const known = new Map(this.#shown.map((hot) => [`${hot.lock.kind} ${hot.lock.name}`, hot.past]));
    this.#shown = chosen.map((hot) => ({ ...hot, past: known.get(`${hot.lock.kind} ${hot.lock.name}`) }));
    this.#draw();
    const withPast = await this.#sampler.withPast(chosen);
    // The user may have selected other locks in the meantime.
    if (this.#shown.length === chosen.length && this.#shown.every(({ lock }, i) => lock === chosen[i]?.lock)) {
      this.#shown = withPast;
    }
  }

  #key(key: Key, interruption: Interruption): void {
    if (key === "interrupt" || (key === "q" && !this.#isTyping)) {
      interruption.end();
      return;
    }
    if (this.#isTyping) this.#type(key);
    else if (key === "/") this.#isTyping = true;
    else if (key === "p") this.#isFrozen = !this.#isFrozen;
    else if (key === "s") this.#order = ORDERS[(ORDERS.indexOf(this.#order) + 1) % ORDERS.length] ?? "waiters";
    else if (key === "escape") this.#filter = "";
    else return;
    this.#draw();
    // If the history cannot be read, the list still shows the last sample, so ignore the error.
    this.#choose().then(
      () => this.#draw(),
      () => {},
    );
  }

  #type(key: Key): void {
    if (key === "enter") this.#isTyping = false;
    else if (key === "escape") {
      this.#isTyping = false;
      this.#filter = "";
    } else if (key === "backspace") this.#filter = Array.from(this.#filter).slice(0, -1).join("");
    else if (Array.from(key).length === 1 && this.#filter.length < LONGEST_FILTER) this.#filter += key;
  }

  #draw(): void {
    const { common, streams } = this.#call;
    const paint = paintFor(streams.stdout, common.color);
    const list = table(fitted(COLUMNS, streams.stdout.columns ?? 80), this.#shown, { paint })
      .trimEnd()
      .split("\n");
    this.#screen.draw([this.#head(), this.#second(), ...this.#notes(), ...list]);
  }

  /** The lines about locks that are not in the list. */
  #notes(): readonly string[] {
    if (this.#snapshot === undefined) return [];
    const notes = [missingText(this.#snapshot.unreachable), partialNote(this.#snapshot, this.#filter)];
    return notes.filter((note) => note !== undefined);
  }

  #head(): string {
    const { atMs = Date.now(), locks = [], isComplete = true } = this.#snapshot ?? {};
    const waiting = locks.reduce((sum, { lock }) => sum + lock.waiterCount, 0);
    const held = locks.filter(({ lock }) => lock.holders.length > 0).length;
    const gone = locks.reduce((sum, { lock }) => sum + goneCount(lock), 0);
    const counts = `${locks.length}${isComplete ? "" : "+"} locks, ${held} held, ${waiting} waiting${gone === 0 ? "" : `, ${gone} gone`}`;
    return `holdfast top  ${formatInstant(atMs)}  every ${formatMs(this.#intervalMs)}  ${counts}`;
  }

  #second(): string {
    if (this.#isTyping) return `filter: ${plain(this.#filter)}_  (Enter keeps it, Esc clears it)`;
    if (this.#trouble !== "") return `holdfast: retrying: ${this.#trouble}`;
    const filter = this.#filter === "" ? "" : `  filter: ${plain(this.#filter)}`;
    return `sorted by ${this.#order}${filter}${this.#isFrozen ? "  FROZEN" : ""}  [s]ort [/]filter [p] freeze [q]uit`;
  }
}

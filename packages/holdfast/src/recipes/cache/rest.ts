import type { Runtime, Timer } from "../../internal.js";
import type { CacheCaller, Callers } from "./callers.js";

/** The rest of a flight that waits: until it is time to ask again, or its least patient caller has waited long enough. */
export class Rest<Value> {
  readonly #runtime: Runtime;
  readonly #callers: Callers<Value>;
  readonly #onOver: (overdue: CacheCaller<Value> | undefined) => void;
  #endsAtMs = 0;
  #wakesAtMs = 0;
  #timer: Timer | undefined;

  /** @param onOver  called once for each rest, with the caller that waits no longer, if that is why */
  constructor(runtime: Runtime, callers: Callers<Value>, onOver: (overdue: CacheCaller<Value> | undefined) => void) {
    this.#runtime = runtime;
    this.#callers = callers;
    this.#onOver = onOver;
  }

  /** Rests for so long from now. It keeps the process alive, since somebody waits. */
  begin(ms: number): void {
    this.#endsAtMs = this.#runtime.monotonicMs() + ms;
    this.#arm();
  }

  /** There is one more caller, who waits until then. Nobody else is looked at: a crowd may come one by one. */
  joined(untilMs: number): void {
    if (untilMs < this.#wakesAtMs) this.#sleep(untilMs);
  }

  end(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#sleep(Math.min(this.#endsAtMs, this.#callers.soonestMs));
  }

  #sleep(untilMs: number): void {
    this.#timer?.cancel();
    this.#wakesAtMs = untilMs;
    this.#timer = this.#runtime.startTimer(() => this.#tick(), untilMs - this.#runtime.monotonicMs(), true);
  }

  #tick(): void {
    const nowMs = this.#runtime.monotonicMs();
    const overdue = this.#callers.overdue(nowMs);
    if (overdue !== undefined || nowMs >= this.#endsAtMs) this.#onOver(overdue);
    else this.#arm();
  }
}

/**
 * Supervises a child that runs under a lock. It forwards signals, ends the child before the lock can be granted to
 * another client, and ends what the child left running before the lock is released.
 *
 * Every decision comes from reading the clocks in `#check`. Timers only choose when to check. This process may have
 * been stopped for longer than the lease, so a timer that fires late must not decide anything by itself.
 */
import { isatty } from "node:tty";
import type { ChildExit, ProcessGroup } from "./process-group.js";
import { isMeantToEnd, type SignalDesk } from "./signals.js";
import { Stopwatch } from "./stopwatch.js";
import { nextCheckMs, reactionTo, type Times } from "./time-table.js";

/** The part of a lease that supervision uses. Every lease of the library has it. */
export interface WatchedLease {
  validForMs(): number;
  readonly signal: AbortSignal;
}

/** When and how to end the child. */
export interface Policy {
  readonly times: Times;
  /** The signal that asks the child to end; TERM by default. */
  readonly stopSignal: NodeJS.Signals;
  /**
   * What to do when the lock is lost: send this signal and later KILL, send only KILL (`SIGKILL`), or do nothing
   * (`ignore`).
   */
  readonly onLost: NodeJS.Signals | "ignore";
  /**
   * Whether a child is killed `times.killAfterMs` after a forwarded signal asked it to end. If false, it may take its
   * time.
   */
  readonly killsAfterForwarding: boolean;
  /** Counted from the start of the supervision, soon after the grant; undefined for no limit. */
  readonly maxHoldMs: number | undefined;
  /** Whether processes that the child leaves behind may keep running. */
  readonly leavesGroup: boolean;
  readonly isForeground: boolean;
}

/** Why a signal was sent. */
export type SignalReason = "forwarded" | "lost" | "max-hold" | "left-over";

/** Callbacks that run when the event happens. */
export interface SupervisionEvents {
  /** Called once. @param sent  the signal that was sent to the child because of the loss; undefined with `ignore` */
  lost(sent: NodeJS.Signals | undefined): void;
  signalled(signal: NodeJS.Signals, why: SignalReason): void;
  childExited(exit: ChildExit): void;
}

/**
 * How the supervision ended. `isLost` takes precedence over the child's exit code, even 0, because the work may have
 * overlapped with another holder's.
 */
export interface SupervisionEnd {
  readonly exit: ChildExit;
  readonly isLost: boolean;
  readonly isMaxHold: boolean;
}

/** Maximum time between two checks. It is short because the clock can be changed and the host can sleep. */
const CHECK_MAX_MS = 250;
/** How often to check whether the last process of a group has ended, because the system does not report that. */
const GROUP_CHECK_MS = 10;

/** Supervises until the child has ended and, unless `leavesGroup` is set, its group is empty. Never rejects. */
export function supervise(
  group: ProcessGroup,
  lease: WatchedLease,
  policy: Policy,
  desk: SignalDesk,
  events: SupervisionEvents,
): Promise<SupervisionEnd> {
  return new Promise((resolve) => new Supervision(group, lease, policy, desk, events, resolve));
}

class Supervision {
  readonly #group: ProcessGroup;
  readonly #lease: WatchedLease;
  readonly #policy: Policy;
  readonly #events: SupervisionEvents;
  readonly #resolve: (end: SupervisionEnd) => void;
  readonly #held = new Stopwatch();
  readonly #onAbort = (): void => this.#check();
  #timer: NodeJS.Timeout | undefined;
  #isLost = false;
  /** For each reason to end the child, the time since it was asked. */
  readonly #asked: Partial<Record<SignalReason, Stopwatch>> = {};
  #isKilled = false;
  #hasReportedExit = false;
  #isOver = false;

  constructor(
    group: ProcessGroup,
    lease: WatchedLease,
    policy: Policy,
    desk: SignalDesk,
    events: SupervisionEvents,
    resolve: (end: SupervisionEnd) => void,
  ) {
    this.#group = group;
    this.#lease = lease;
    this.#policy = policy;
    this.#events = events;
    this.#resolve = resolve;
    lease.signal.addEventListener("abort", this.#onAbort);
    void group.exited.then(() => this.#check());
    desk.take((signal) => this.#forward(signal));
    const { interruption } = desk;
    // Forward a signal that arrived between the grant and the child's start.
    if (interruption !== undefined) this.#forward(interruption.signal);
    this.#check();
  }

  #check(): void {
    if (this.#isOver) return;
    clearTimeout(this.#timer);
    const { exit } = this.#group;
    if (exit !== undefined && !this.#hasReportedExit) {
      this.#hasReportedExit = true;
      this.#events.childExited(exit);
    }
    if (exit !== undefined && (this.#policy.leavesGroup || !this.#group.isAlive())) {
      this.#end(exit);
      return;
    }
    this.#mindLease();
    this.#mindMaxHold();
    if (exit !== undefined) this.#endLeftOvers();
    if (this.#policy.killsAfterForwarding) this.#killAfter("forwarded");
    this.#timer = setTimeout(() => this.#check(), this.#nextCheckMs());
  }

  #end(exit: ChildExit): void {
    this.#isOver = true;
    this.#group.letGo();
    this.#lease.signal.removeEventListener("abort", this.#onAbort);
    // The child has ended, but possibly only after the lock was lost.
    if (this.#isLeaseOver()) this.#lose(undefined);
    this.#resolve({ exit, isLost: this.#isLost, isMaxHold: this.#asked["max-hold"] !== undefined });
  }

  #isLeaseOver(): boolean {
    return this.#lease.validForMs() <= 0 || this.#lease.signal.aborted;
  }

  #mindLease(): void {
    const { onLost } = this.#policy;
    if (onLost === "ignore") {
      if (this.#isLeaseOver()) this.#lose(undefined);
      return;
    }
    const state = { validForMs: this.#lease.validForMs(), isLost: this.#lease.signal.aborted };
    const reaction = reactionTo(state, this.#asked.lost?.elapsedMs(), this.#timesOfLoss());
    if (reaction === "none") return;
    const signal = reaction === "kill" ? "SIGKILL" : onLost;
    const isFirst = !this.#isLost;
    if (isFirst) this.#asked.lost = new Stopwatch();
    this.#send(signal, "lost");
    if (isFirst) {
      this.#group.hurry();
      this.#lose(signal);
    }
  }

  /** With KILL as the signal for a loss, the child needs no time to end, so the grace period is 0. */
  #timesOfLoss(): Times {
    const { times, onLost } = this.#policy;
    return onLost === "SIGKILL" ? { ...times, killAfterMs: 0 } : times;
  }

  #mindMaxHold(): void {
    const { maxHoldMs, stopSignal } = this.#policy;
    if (maxHoldMs === undefined || this.#held.elapsedMs() < maxHoldMs) return;
    if (this.#asked["max-hold"] === undefined) {
      this.#asked["max-hold"] = new Stopwatch();
      this.#send(stopSignal, "max-hold");
    }
    this.#killAfter("max-hold");
  }

  #endLeftOvers(): void {
    // KILL has already been sent. Processes that are still visible have not run since, or were being started at that
    // moment.
    if (this.#isKilled) {
      this.#send("SIGKILL", "left-over");
      return;
    }
    if (this.#asked["left-over"] === undefined) {
      this.#asked["left-over"] = new Stopwatch();
      this.#send(this.#policy.stopSignal, "left-over");
    }
    this.#killAfter("left-over");
  }

  #killAfter(why: SignalReason): void {
    const askedForMs = this.#asked[why]?.elapsedMs();
    if (askedForMs !== undefined && askedForMs >= this.#policy.times.killAfterMs) this.#send("SIGKILL", why);
  }

  #forward(signal: NodeJS.Signals): void {
    if (this.#isOver) return;
    if (isMeantToEnd(signal)) this.#asked.forwarded ??= new Stopwatch();
    // The terminal has already sent this signal to the child, because both are in the same process group.
    const isFromTerminal = this.#policy.isForeground && /^SIG(INT|QUIT)$/.test(signal) && isatty(0);
    if (!isFromTerminal) this.#send(signal, "forwarded");
    this.#check();
  }

  /** KILL can be sent several times, to reach processes that were just being started. It is reported only once. */
  #send(signal: NodeJS.Signals, why: SignalReason): void {
    this.#group.signal(signal);
    if (signal === "SIGKILL" && this.#isKilled) return;
    if (signal === "SIGKILL") this.#isKilled = true;
    this.#events.signalled(signal, why);
  }

  #lose(sent: NodeJS.Signals | undefined): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#events.lost(sent);
  }

  #nextCheckMs(): number {
    const { maxHoldMs = Infinity, killsAfterForwarding } = this.#policy;
    if (this.#group.exit !== undefined || this.#isKilled) return GROUP_CHECK_MS;
    const state = { validForMs: this.#lease.validForMs(), isLost: this.#lease.signal.aborted };
    const waits = [
      CHECK_MAX_MS,
      this.#policy.onLost === "ignore"
        ? Infinity
        : nextCheckMs(state, this.#asked.lost?.elapsedMs(), this.#timesOfLoss()),
      this.#asked["max-hold"] === undefined ? maxHoldMs - this.#held.elapsedMs() : this.#untilKillMs("max-hold"),
      killsAfterForwarding ? this.#untilKillMs("forwarded") : Infinity,
    ];
    return Math.max(1, Math.min(...waits));
  }

  #untilKillMs(why: SignalReason): number {
    const asked = this.#asked[why];
    return asked === undefined ? Infinity : this.#policy.times.killAfterMs - asked.elapsedMs();
  }
}

/**
 * A child under a lock: passes signals on, ends the child before the lock can be somebody else's, and what it left running
 * before the lock is given back.
 *
 * Every decision is made by reading the clocks (`#check`); timers only choose when to check. Nothing is decided by a timer
 * that fires: this process may have been stopped for longer than the lease, and then it looks first.
 */
import { isatty } from "node:tty";
import type { ChildExit, ProcessGroup } from "./process-group.js";
import { isMeantToEnd, type SignalDesk } from "./signals.js";
import { Stopwatch } from "./stopwatch.js";
import { nextCheckMs, reactionTo, type Times } from "./time-table.js";

/** What is asked of the lease: any lease of the library has it. */
export interface WatchedLease {
  validForMs(): number;
  readonly signal: AbortSignal;
}

/** What to do when. */
export interface Policy {
  readonly times: Times;
  /** Sent where the child is to end: TERM, unless somebody wants another. */
  readonly stopSignal: NodeJS.Signals;
  /** On a lost lock: `stopSignal` or another signal and then KILL, KILL alone, or nothing at all. */
  readonly onLost: NodeJS.Signals | "ignore";
  /** Whether a child that was passed a signal to end is killed after `times.killAfterMs`, or may take its time. */
  readonly killsAfterForwarding: boolean;
  /** Since the grant; undefined for no limit. */
  readonly maxHoldMs: number | undefined;
  /** Leaves running what the child has left behind. */
  readonly leavesGroup: boolean;
  readonly isForeground: boolean;
}

/** Why a signal was sent. */
export type SignalReason = "forwarded" | "lost" | "max-hold" | "left-over";

/** Is told what happens, when it happens. */
export interface SupervisionEvents {
  /** Once. @param sent  what the child was sent for it; undefined with `ignore` */
  lost(sent: NodeJS.Signals | undefined): void;
  signalled(signal: NodeJS.Signals, why: SignalReason): void;
  childExited(exit: ChildExit): void;
}

/** How it ended. `isLost` says more than the child's own code, even 0: the work may have overlapped. */
export interface SupervisionEnd {
  readonly exit: ChildExit;
  readonly isLost: boolean;
  readonly isMaxHold: boolean;
}

/** Longest time between two checks, because a clock may be set, and a host may sleep. */
const CHECK_MAX_MS = 250;
/** How often to check whether the last process of a group has ended, because the system does not report that. */
const GROUP_CHECK_MS = 10;

/** Watches until the child and, unless told otherwise, its group are gone. Never rejects. */
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
  /** Since the child was asked to end, for each reason to ask. */
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
    // It came between the grant and the child's start.
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
    // It ended, but nobody can tell any more that it ended in time.
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

  /** Who is killed is not asked first, so that there is no time for it either. */
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
    // All of it was killed: what is still seen of it has not been on a processor since, or was just being started.
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
    // A terminal has sent it to the child already: the two are in one group.
    const isFromTerminal = this.#policy.isForeground && /^SIG(INT|QUIT)$/.test(signal) && isatty(0);
    if (!isFromTerminal) this.#send(signal, "forwarded");
    this.#check();
  }

  /** KILL may be sent again, for whoever was just being started; it is told once. */
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

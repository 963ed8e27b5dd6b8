/**
 * Sends echoes to check whether the subscriber connections of a client still deliver messages, and handles reconnects.
 */
import { StoreError } from "./errors.js";
import { channels, type InboxEvent } from "./events.js";
import { outsideRequests, type Runtime, SharedTimer, type Timer } from "./runtime.js";
import type { Inbox } from "./store.js";
import { type Moment, now } from "./time.js";

// --- Finds out whether messages still reach this client over one subscriber connection, while claims wait for them.
//
// A connection can be dead without any sign: a firewall has dropped it silently, the server has closed its side, or
// the subscription delivers nothing. The server keeps granting to such a client, or drops it from every queue. So the
// client sometimes sends a message to itself, which is called an echo. While no echoes arrive, waiters keep their
// places in the queue and poll, and Holdfast replaces the connection.
//
// Invariants:
// - No check begins unless claims wait or are retained.
// - A stalled server, a frozen process or a lost reply never counts as a failed check.
// - A connection is replaced at most once every `REOPEN_EVERY_MS`.

/** A re-check of a waiter also checks its connection if the connection has delivered no message for this many ms. */
const STALE_MS = 2_500;
/** A lost grant causes no check if the connection was checked, or delivered a message, less than this many ms ago. */
const FRESH_MS = 1_000;
/** How long an echo may take after the reply of the script that sent it, in ms. */
const ECHO_MS = 1_000;
/**
 * If a check takes longer than this many ms, its timer was lost, for example because a test faked the timers and then
 * restored them.
 */
const LOST_MS = 60_000;
/** If a timer fires more than this many ms late, the event loop was blocked, so the echo may be delayed too. */
const LATE_MS = 250;
/** The shortest time between two replacements of one connection, in ms, without jitter. */
const REOPEN_EVERY_MS = 15_000;

/** A claim that waits for messages. */
export interface Listening {
  /** Called if messages do not arrive. The claim then asks the server after a short delay. */
  poll(): void;
}

/** The inbox and the channel that echoes are sent to. */
export interface Target {
  readonly inbox: Inbox;
  readonly channel: string;
  /** Whether the server that sends the echoes can count the subscribers of the channel. */
  readonly isCounted: boolean;
}

/** Sends echoes, and reports connections that deliver none. */
export interface Echo {
  /** Sends an echo. Resolves to true if the server counts the subscriber. @throws StoreError */
  send(echo: Pick<Target, "channel" | "isCounted"> & { readonly number: number }, timeoutMs: number): Promise<boolean>;
  /**
   * Called once per period without messages, if replacing the connection did not help or is not possible.
   *
   * @param refusal  the server's error reply, if the server refuses to send messages from a script
   */
  onDeaf(connection: string, refusal: StoreError | undefined): void;
}

/** The facts that all checks of one client share. */
interface CheckFacts {
  readonly runtime: Runtime;
  readonly clientId: string;
  /** Timeout for one script call, and for one replacement of the connection, in ms. */
  readonly commandTimeoutMs: number;
  /** Returns a number for an echo. No claim has that number, so the echo reaches no claim. */
  readonly newNumber: () => number;
}

interface Trial {
  /** Whether the script that sends the echo has replied. */
  isSent: boolean;
  hasHeard: boolean;
}

/** Checks one subscriber connection while claims wait for messages on it. */
export class InboxCheck {
  readonly #echo: Echo;
  readonly #facts: CheckFacts;
  readonly #connection: string;
  /** Runs `work`, which replaces the connection; returns undefined if another connection is being replaced. */
  readonly #replace: (work: () => Promise<void>) => Promise<void> | undefined;
  readonly #listening = new Set<Listening>();
  /** The target of the newest waiter, because older inboxes may be closed. */
  target: Target;
  #heardAt: Moment;
  #checkedAt: Moment;
  #trial: Trial | undefined;
  #timer: Timer | undefined;
  #deafSince: Moment | undefined;
  #hasWarned = false;
  #reopenableAtMs = -Infinity;
  #isClosed = false;

  /** Sends no echo until a claim joins. */
  constructor(
    echo: Echo,
    facts: CheckFacts,
    connection: string,
    target: Target,
    replace: (work: () => Promise<void>) => Promise<void> | undefined,
  ) {
    this.#echo = echo;
    this.#facts = facts;
    this.#connection = connection;
    this.target = target;
    this.#replace = replace;
    // The server has just confirmed the subscription.
    this.#heardAt = this.#checkedAt = now(facts.runtime);
  }

  /** True if the last check failed, which means that messages do not arrive. */
  get isDeaf(): boolean {
    return this.#deafSince !== undefined;
  }

  /** Adds a waiting claim. The first one starts a check if one is due; the check does not delay the claim. */
  join(waiting: Listening): void {
    this.#listening.add(waiting);
    if (this.#listening.size === 1) this.due();
  }

  /** Removes a claim that is no longer waiting. */
  leave(waiting: Listening): void {
    this.#listening.delete(waiting);
  }

  /** Called before each re-check of a waiter, and for each claim that may be retained. Starts a check if one is due. */
  due(): void {
    const isQuiet = this.isDeaf || this.#elapsedMs(this.#heardAt) > STALE_MS;
    if (isQuiet && this.#elapsedMs(this.#checkedAt) > STALE_MS) this.#check();
  }

  /** Called when a re-check finds a grant, because the message of that grant may have been lost. */
  missed(): void {
    if (this.#elapsedMs(this.#heardAt) > FRESH_MS && this.#elapsedMs(this.#checkedAt) > FRESH_MS) this.#check();
  }

  /** Called for each message received. Every message counts as an echo. */
  heard(): void {
    this.#heardAt = now(this.#facts.runtime);
    if (this.#trial === undefined) return;
    this.#trial.hasHeard = true;
    if (this.#trial.isSent) this.#passed();
  }

  /** Ends the running check, and starts no more. */
  close(): void {
    this.#isClosed = true;
    this.#endTrial();
  }

  #check(): void {
    if (this.#isClosed || (this.#trial !== undefined && this.#elapsedMs(this.#checkedAt) < LOST_MS)) return;
    this.#endTrial();
    const trial: Trial = { isSent: false, hasHeard: false };
    this.#trial = trial;
    this.#checkedAt = now(this.#facts.runtime);
    const { channel, isCounted } = this.target;
    const number = this.#facts.newNumber();
    const ask = (): Promise<void> =>
      this.#echo.send({ channel, isCounted, number }, this.#facts.commandTimeoutMs).then(
        (isSubscribed) => {
          if (this.#trial !== trial) return;
          trial.isSent = true;
          if (!isSubscribed) this.#failed();
          else if (trial.hasHeard) this.#passed();
          else this.#await(ECHO_MS);
        },
        (error: unknown) => {
          if (this.#trial !== trial) return;
          // All other errors concern the command connection and say nothing about the subscriber connection.
          if (error instanceof StoreError && !error.transient && error.mayHaveRun) this.#failed(error);
          else this.#endTrial();
        },
      );
    void outsideRequests(ask);
  }

  /** Waits for the echo. If the timer fires late, waits again, because the echo may be delayed too. */
  #await(delayMs: number): void {
    const { runtime } = this.#facts;
    const startedAt = now(runtime);
    this.#timer = runtime.startTimer(
      () => {
        if (this.#elapsedMs(startedAt) > delayMs + LATE_MS) this.#await(ECHO_MS);
        // Timers run before sockets are read, so wait for one more full turn of the event loop.
        else if (delayMs === ECHO_MS) this.#await(1);
        else this.#failed();
      },
      delayMs,
      false,
    );
  }

  #passed(): void {
    this.#endTrial();
    if (this.#deafSince === undefined) return;
    this.#publish("hears", this.#elapsedMs(this.#deafSince));
    this.#deafSince = undefined;
    this.#hasWarned = false;
  }

  /**
   * @param refusal  the server's error reply, if it refused to publish the echo or to count its subscribers; a new
   *                 connection would not help then
   */
  #failed(refusal?: StoreError): void {
    this.#endTrial();
    if (this.#deafSince === undefined) {
      this.#deafSince = now(this.#facts.runtime);
      this.#publish("deaf", 0);
      for (const waiting of [...this.#listening]) waiting.poll();
    }
    const { runtime, commandTimeoutMs } = this.#facts;
    const { inbox } = this.target;
    const nowMs = runtime.monotonicMs();
    if (refusal !== undefined || inbox.reopen === undefined || nowMs < this.#reopenableAtMs) {
      this.#warn(refusal);
      return;
    }
    const reopening = this.#replace(() => inbox.reopen?.(commandTimeoutMs) ?? Promise.resolve());
    if (reopening === undefined) return;
    this.#reopenableAtMs = nowMs + REOPEN_EVERY_MS * (1 + runtime.random() / 3);
    reopening.then(
      () => {
        // A connection to another server, which is possible in a cluster, has its own check, so end this one as passed.
        if (inbox.connection === undefined || inbox.connection === this.#connection) this.#check();
        else this.#passed();
      },
      () => this.#warn(),
    );
  }

  #warn(refusal?: StoreError): void {
    if (this.#hasWarned || this.#isClosed) return;
    this.#hasWarned = true;
    this.#echo.onDeaf(this.#connection, refusal);
  }

  #publish(state: InboxEvent["state"], deafMs: number): void {
    if (!channels.inbox.hasSubscribers) return;
    const event: InboxEvent = { clientId: this.#facts.clientId, connection: this.#connection, state, deafMs };
    channels.inbox.publish(event);
  }

  #endTrial(): void {
    this.#trial = undefined;
    this.#timer?.cancel();
  }

  /**
   * The elapsed time on whichever clock shows more: the monotonic clock may stop on a suspended host, and the wall
   * clock may be set back.
   */
  #elapsedMs(since: Moment): number {
    const { monotonicMs, wallMs } = now(this.#facts.runtime);
    return Math.max(monotonicMs - since.monotonicMs, wallMs - since.wallMs);
  }
}

/** The checks of one client: one per subscriber connection. */
export class InboxChecks {
  readonly #echo: Echo;
  readonly #facts: CheckFacts;
  readonly #checks = new Map<string, InboxCheck>();
  #isReplacing = false;

  constructor(echo: Echo, facts: CheckFacts) {
    this.#echo = echo;
    this.#facts = facts;
  }

  /** Returns the check of the connection that serves this inbox now. Creates it if needed. */
  of(target: Target): InboxCheck {
    const connection = target.inbox.connection ?? "";
    let check = this.#checks.get(connection);
    if (check === undefined) {
      check = new InboxCheck(this.#echo, this.#facts, connection, target, (work) => this.#replaceOne(work));
      this.#checks.set(connection, check);
    }
    check.target = target;
    return check;
  }

  /** Called for each message to `inbox`. */
  heard(inbox: Inbox | undefined): void {
    if (inbox !== undefined) this.#checks.get(inbox.connection ?? "")?.heard();
  }

  /** Ends all checks. */
  close(): void {
    for (const check of this.#checks.values()) check.close();
  }

  /** Replaces connections one at a time. @returns undefined if another connection is being replaced */
  #replaceOne(work: () => Promise<void>): Promise<void> | undefined {
    if (this.#isReplacing) return undefined;
    this.#isReplacing = true;
    return work().finally(() => {
      this.#isReplacing = false;
    });
  }
}

/** A connection that lasts for this many ms counts as stable. */
const CALM_MS = 10_000;
/** Shortest and longest delay of a notification, in ms. The delay doubles each time until the connection is stable. */
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

/**
 * Decides when claims ask the server after a reconnect: immediately, unless the connection is lost repeatedly.
 *
 * A proxy may accept connections and reset each one on the first request. If every waiter and holder asked on each
 * reconnect, the client and the proxy would keep each other busy with hundreds of connections a second.
 *
 * A session has one instance per kind of connection.
 */
export class Reconnects {
  readonly #runtime: Runtime;
  readonly #notify: () => void;
  readonly #timer: SharedTimer;
  #lastAtMs = -Infinity;
  #pauseMs = 0;

  /** @param notify  called once for one reconnect, or for several in a row */
  constructor(runtime: Runtime, notify: () => void) {
    this.#runtime = runtime;
    this.#notify = notify;
    this.#timer = new SharedTimer(runtime, notify);
  }

  /** Called for each reconnect. */
  happened(): void {
    const nowMs = this.#runtime.monotonicMs();
    const isCalm = nowMs - this.#lastAtMs > CALM_MS;
    this.#lastAtMs = nowMs;
    if (isCalm) {
      this.#pauseMs = 0;
      this.#timer.cancel();
      this.#notify();
    } else if (!this.#timer.isRunning) {
      this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, PAUSE_MIN_MS), PAUSE_MAX_MS);
      // Add jitter so that processes do not all ask at the same moment.
      this.#timer.start(this.#pauseMs * (0.5 + this.#runtime.random() / 2));
    }
  }

  /** Cancels pending notifications. */
  close(): void {
    this.#timer.cancel();
  }
}

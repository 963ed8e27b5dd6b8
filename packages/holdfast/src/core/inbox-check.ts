/**
 * Whether the connections of a client still work: echoes for the subscriber connection, and what follows on a reconnect.
 */
import { StoreError } from "./errors.js";
import { channels, type InboxEvent } from "./events.js";
import { outsideRequests, type Runtime, SharedTimer, type Timer } from "./runtime.js";
import type { Inbox } from "./store.js";
import { type Moment, now } from "./time.js";

// --- Finds out whether messages still reach this client over one subscriber connection, while claims wait for them.
//
// A connection can be dead without a sign: a firewall dropped it silently, the server closed its side, or the subscription
// delivers nothing. The server goes on granting to such a client, or drops it from every queue. So the client sends itself a
// message now and then, which is called an echo. While echoes stay away, waiters keep their places in the queue and poll, and the
// connection is replaced.
//
// Invariants: without waiters no check begins; a stalled server, a frozen process and a lost reply prove nothing; a connection
// is replaced at most once in `REOPEN_EVERY_MS`.

/** A connection over which nothing was received for this long is checked: at each re-check of a waiter, unless messages come. */
const STALE_MS = 2_500;
/** A lost grant is no reason for a check if the connection was checked, or delivered something, this recently. */
const FRESH_MS = 1_000;
/** How long an echo may take after the reply of the script that sent it. */
const ECHO_MS = 1_000;
/** A check that takes longer has lost its timer, as in a test that fakes timers and restores the real ones. */
const LOST_MS = 60_000;
/** A timer that fires later than this was held up, and the message with it. */
const LATE_MS = 250;
/** The shortest time between two replacements of one connection, without jitter. */
const REOPEN_EVERY_MS = 15_000;

/** A claim that waits for messages. */
export interface Listening {
  /** Messages do not arrive: ask the server after a short pause. */
  poll(): void;
}

/** Where echoes go. */
export interface Target {
  readonly inbox: Inbox;
  readonly channel: string;
  /** Whether the server that runs the script can count who listens to the channel. */
  readonly isCounted: boolean;
}

/** What a check needs from outside. */
export interface Echo {
  /** Sends the echo; answers whether the server counts the subscriber. @throws StoreError */
  send(echo: Pick<Target, "channel" | "isCounted"> & { readonly number: number }, timeoutMs: number): Promise<boolean>;
  /**
   * Called once for each time in which a connection stays deaf after it was replaced, or cannot be replaced.
   *
   * @param refusal  what the server has answered, if it refuses to send messages from a script
   */
  onDeaf(connection: string, refusal: StoreError | undefined): void;
}

/** What all checks of one client share. */
interface CheckFacts {
  readonly runtime: Runtime;
  readonly clientId: string;
  /** Longest time for one script call and for one replacement, in ms. */
  readonly commandTimeoutMs: number;
  /** A number that no claim has: the server may publish a hint for it, which must reach none. */
  readonly newNumber: () => number;
}

interface Trial {
  /** The server has counted the subscriber and sent the echo. */
  isSent: boolean;
  hasHeard: boolean;
}

/** The check of one subscriber connection. See the top of this file. */
export class InboxCheck {
  readonly #echo: Echo;
  readonly #facts: CheckFacts;
  readonly #connection: string;
  /** Asked before each replacement, which may have to wait for that of another connection. */
  readonly #replace: (work: () => Promise<void>) => Promise<void> | undefined;
  readonly #listening = new Set<Listening>();
  /** Where the newest waiter listens: an older inbox may be closed by now. */
  target: Target;
  #heardAt: Moment;
  #checkedAt: Moment;
  #trial: Trial | undefined;
  #timer: Timer | undefined;
  #deafSince: Moment | undefined;
  #hasWarned = false;
  #reopenableAtMs = -Infinity;
  #isClosed = false;

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

  /** Whether echoes stay away. */
  get isDeaf(): boolean {
    return this.#deafSince !== undefined;
  }

  /** One more claim waits. The first one after an idle period starts a check, which does not delay it. */
  join(waiting: Listening): void {
    this.#listening.add(waiting);
    if (this.#listening.size === 1) this.due();
  }

  /** The claim does not wait any more. */
  leave(waiting: Listening): void {
    this.#listening.delete(waiting);
  }

  /** A claim that waits asks the server again by itself: a good moment for a check, if one is due. */
  due(): void {
    const isQuiet = this.isDeaf || this.#elapsedMs(this.#heardAt) > STALE_MS;
    if (isQuiet && this.#elapsedMs(this.#checkedAt) > STALE_MS) this.#check();
  }

  /** A claim has found a grant by asking, so its message may be lost. */
  missed(): void {
    if (this.#elapsedMs(this.#heardAt) > FRESH_MS && this.#elapsedMs(this.#checkedAt) > FRESH_MS) this.#check();
  }

  /** A message was received. Each of them counts as an echo. */
  heard(): void {
    this.#heardAt = now(this.#facts.runtime);
    if (this.#trial === undefined) return;
    this.#trial.hasHeard = true;
    if (this.#trial.isSent) this.#passed();
  }

  /** Ends what is under way. */
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
          // Else the command connection has failed, which says nothing about this one.
          if (error instanceof StoreError && !error.transient && error.mayHaveRun) this.#failed(error);
          else this.#endTrial();
        },
      );
    void outsideRequests(ask);
  }

  /** Waits once more if the timer was late, because then the message was held up as well. */
  #await(delayMs: number): void {
    const { runtime } = this.#facts;
    const startedAt = now(runtime);
    this.#timer = runtime.startTimer(
      () => {
        if (this.#elapsedMs(startedAt) > delayMs + LATE_MS) this.#await(ECHO_MS);
        // Timers run before sockets are read, so one full turn of the event loop follows.
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

  /** @param refusal  why the server does not send or count; another connection would not help */
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
        // In a cluster the replacement may lead to another server, whose connection has a check of its own.
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

  /** By the clock that says more: the monotonic one may stand still in a suspended host, and the wall clock may be set back. */
  #elapsedMs(since: Moment): number {
    const { monotonicMs, wallMs } = now(this.#facts.runtime);
    return Math.max(monotonicMs - since.monotonicMs, wallMs - since.wallMs);
  }
}

/** The checks of a client, one for each of its subscriber connections. */
export class InboxChecks {
  readonly #echo: Echo;
  readonly #facts: CheckFacts;
  readonly #checks = new Map<string, InboxCheck>();
  #isReplacing = false;

  constructor(echo: Echo, facts: CheckFacts) {
    this.#echo = echo;
    this.#facts = facts;
  }

  /** The check of the connection over which that inbox is heard at present. */
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

  /** A message came through that inbox. */
  heard(inbox: Inbox | undefined): void {
    if (inbox !== undefined) this.#checks.get(inbox.connection ?? "")?.heard();
  }

  /** Ends all of them. */
  close(): void {
    for (const check of this.#checks.values()) check.close();
  }

  /** In a cluster one connection at a time. @returns undefined while another one is replaced */
  #replaceOne(work: () => Promise<void>): Promise<void> | undefined {
    if (this.#isReplacing) return undefined;
    this.#isReplacing = true;
    return work().finally(() => {
      this.#isReplacing = false;
    });
  }
}

/** A connection that was not lost for this long is not in trouble. */
const CALM_MS = 10_000;
/** Doubled with each reconnect in between. */
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

/**
 * When to ask the server after a connection came back: at once, unless it is lost again and again.
 *
 * A proxy may accept connections and reset each one at the first request. If every waiter and holder asked at each reconnect, the
 * client and the proxy would keep each other busy with hundreds of connections a second.
 *
 * One for each kind of connection.
 */
export class Reconnects {
  readonly #runtime: Runtime;
  readonly #tell: () => void;
  readonly #timer: SharedTimer;
  #lastAtMs = -Infinity;
  #pauseMs = 0;

  /** @param tell  called for one reconnect, or for several in a row */
  constructor(runtime: Runtime, tell: () => void) {
    this.#runtime = runtime;
    this.#tell = tell;
    this.#timer = new SharedTimer(runtime, tell);
  }

  /** The connection came back. */
  happened(): void {
    const nowMs = this.#runtime.monotonicMs();
    const isCalm = nowMs - this.#lastAtMs > CALM_MS;
    this.#lastAtMs = nowMs;
    if (isCalm) {
      this.#pauseMs = 0;
      this.#timer.cancel();
      this.#tell();
    } else if (!this.#timer.isRunning) {
      this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, PAUSE_MIN_MS), PAUSE_MAX_MS);
      // So that processes do not ask at the same moment.
      this.#timer.start(this.#pauseMs * (0.5 + this.#runtime.random() / 2));
    }
  }

  /** Nobody is told any more. */
  close(): void {
    this.#timer.cancel();
  }
}

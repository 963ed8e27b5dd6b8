/**
 * The guard for requests that may acquire a lock: it refuses servers that must not be used for locks.
 */
import { EvictionError, type LockError } from "./errors.js";
import type { Runtime } from "./runtime.js";

/** Creates the error that says why a server must not be used for a lock. */
export type Refusal = (lockName: string) => LockError;

/** A check of a server before it is used for locks. */
export interface Question {
  /** Asks the server. Resolves to undefined if the server may be used. @throws StoreError */
  ask(): Promise<Refusal | undefined>;
  /**
   * How long a positive answer stays valid, in ms; `Guard.renew` repeats the check. If undefined, the answer stays
   * valid until the connection is lost, and `Guard.renew` skips the check.
   */
  readonly countsForMs?: number | undefined;
}

/** One check of the server, and the result of its last run. */
class ServerQuestion {
  readonly #question: Question;
  readonly #runtime: Runtime;
  refusal: Refusal | undefined;
  /** Whether the last answer was positive and still counts. A reconnect resets this; `renew` can reset it, too. */
  isOpen = false;
  #openedAtMs = -Infinity;
  #hasFailed = false;
  #asking: Promise<void> | undefined;

  constructor(question: Question, runtime: Runtime) {
    this.#question = question;
    this.#runtime = runtime;
  }

  get isRenewed(): boolean {
    return this.#question.countsForMs !== undefined;
  }

  /**
   * Whether the reply to a request must wait for the answer to this question.
   *
   * In a cluster, a question that is renewed goes to a slot of its own. The server of that slot may fail to reply while
   * the server that gets the request replies. So such a question delays no request while its last positive answer is
   * valid. After that, it delays requests only until it has failed once.
   */
  get isAwaited(): boolean {
    if (this.isOpen) return false;
    return !this.isRenewed || (!this.#hasFailed && !this.#counts());
  }

  /** Asks again. Until the reply arrives, the last positive answer still counts if it is valid. @throws StoreError */
  renew(): Promise<void> {
    if (!this.#counts()) this.isOpen = false;
    return this.ask();
  }

  /** Called after a reconnect. A positive answer no longer counts; a refusal stays until the next answer. */
  serverMayHaveChanged(): void {
    this.isOpen = false;
    this.#openedAtMs = -Infinity;
    this.#hasFailed = false;
  }

  #counts(): boolean {
    const { countsForMs = Infinity } = this.#question;
    return this.#runtime.monotonicMs() - this.#openedAtMs < countsForMs;
  }

  /** Asks the server. Concurrent callers share one request. @throws StoreError */
  ask(): Promise<void> {
    this.#asking ??= this.#askOnce().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOnce(): Promise<void> {
    const askedAtMs = this.#runtime.monotonicMs();
    try {
      this.refusal = await this.#question.ask();
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
    this.#hasFailed = false;
    this.isOpen = this.refusal === undefined;
    this.#openedAtMs = this.isOpen ? askedAtMs : -Infinity;
  }
}

/**
 * Refuses acquire requests to a server that must not be used, such as a server that may evict locks.
 *
 * Invariants:
 * - Unless the server is refused, an acquire sends the pending questions (those without a valid positive answer)
 *   together with its request, so one round trip is enough.
 * - After a positive answer the guard costs nothing.
 * - If a question gets no answer, the last answer stays in effect.
 * - If the server is refused, each acquire first asks it again, so that clients need no restart after it is fixed.
 */
export class Guard {
  readonly #asked: readonly ServerQuestion[];
  readonly #runtime: Runtime;
  /** Cached, because every acquire reads it. */
  #isOpen: boolean;

  /** @param questions  empty for a guard that refuses nothing */
  constructor(questions: readonly Question[], runtime: Runtime) {
    this.#asked = questions.map((question) => new ServerQuestion(question, runtime));
    this.#runtime = runtime;
    this.#isOpen = questions.length === 0;
  }

  /** True if every check has passed, so a request needs no check. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Called after a reconnect, because the connection may now go to another server. */
  serverMayHaveChanged(): void {
    for (const one of this.#asked) one.serverMayHaveChanged();
    this.#update();
  }

  /**
   * Called when the client record is refreshed. Repeats the questions whose answers are valid only for a limited time.
   * Never rejects.
   */
  renew(): void {
    for (const one of this.#asked.filter(({ isRenewed }) => isRenewed)) {
      const asking = one.renew().catch(() => {
        // The check failed, so the next acquire asks again.
        one.isOpen = false;
      });
      void asking.then(() => this.#update());
    }
    this.#update();
  }

  /**
   * Sends a request together with the pending questions. Returns the reply once these questions are answered too, or
   * after `timeoutMs`.
   *
   * @throws the refusal; the caller must undo what the request did on the server
   * @throws the errors from `send`; StoreError if the server was refused before and the check cannot be repeated
   */
  async pass<Answer>(lockName: string, send: () => Promise<Answer>, timeoutMs: number): Promise<Answer> {
    const refusing = this.#asked.filter(({ refusal }) => refusal !== undefined);
    if (refusing.length > 0) {
      await Promise.all(refusing.map((one) => one.ask()));
      this.#update();
      this.#refuse(lockName);
    }
    const asking = this.#ask();
    const answer = await send();
    if (this.#asked.some(({ isAwaited }) => isAwaited)) await this.#atMost(timeoutMs, asking);
    this.#refuse(lockName);
    return answer;
  }

  /**
   * Asks the pending questions before a request is sent, for requests that must not reach a refused server.
   *
   * @throws the refusal
   */
  async check(lockName: string): Promise<void> {
    if (!this.#isOpen) await this.#ask();
    this.#refuse(lockName);
  }

  #refuse(lockName: string): void {
    for (const { refusal } of this.#asked) if (refusal !== undefined) throw refusal(lockName);
  }

  /** Asks the pending questions. A question that fails stays pending. */
  async #ask(): Promise<void> {
    await Promise.allSettled(this.#asked.filter(({ isOpen }) => !isOpen).map((one) => one.ask()));
    this.#update();
  }

  #update(): void {
    this.#isOpen = this.#asked.every(({ isOpen }) => isOpen);
  }

  async #atMost(limitMs: number, asking: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const limit = this.#runtime.startTimer(resolve, limitMs, true);
      void asking.then(() => {
        limit.cancel();
        resolve();
      });
    });
  }
}

// --- Whether a server may evict locks. Every key of a lock has an expiry, so any policy other than `noeviction` can
// evict it while the lock is held. Then the next acquire gets the lock too, and there are two holders.

/** The settings that decide what a server does when its memory is full. */
export interface MemoryPolicy {
  /** Value of `maxmemory-policy`. */
  readonly policy: string;
  /** Value of `maxmemory`, in bytes; 0 means no limit, so nothing is evicted. */
  readonly maxmemoryBytes: number;
}

/** Whether a server with this policy may evict locks. */
export function evicts({ policy, maxmemoryBytes }: MemoryPolicy): boolean {
  return maxmemoryBytes > 0 && policy !== "noeviction";
}

/** The callbacks of `evictionQuestion`. */
export interface EvictionFacts {
  /** Reads the policy from the server. Resolves to undefined if the server hides it. @throws StoreError */
  readonly read: () => Promise<MemoryPolicy | undefined>;
  /** Called once if the server hides its policy. */
  readonly onHidden: () => void;
}

/** Returns the check that refuses a server that may evict locks. A server that hides its policy is not refused. */
export function evictionQuestion({ read, onHidden }: EvictionFacts): Question {
  let hasToldHidden = false;
  return {
    async ask() {
      const found = await read();
      if (found === undefined && !hasToldHidden) {
        hasToldHidden = true;
        onHidden();
      }
      return found !== undefined && evicts(found) ? (lockName) => new EvictionError(lockName, found) : undefined;
    },
  };
}

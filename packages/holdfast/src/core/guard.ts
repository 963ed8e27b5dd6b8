/**
 * The guard before requests that may take a lock: a server that is not fit for locks is refused.
 */
import { EvictionError, type LockError } from "./errors.js";
import type { Runtime } from "./runtime.js";

/** Why a server must not be used, as an error about a lock. */
export type Refusal = (lockName: string) => LockError;

/** What a server is asked before it is used. */
export interface Question {
  /** Asks the server; undefined if nothing stands against it. @throws StoreError */
  ask(): Promise<Refusal | undefined>;
  /** A good answer counts for so long, and `Guard.renew` asks again; undefined if it counts until the connection was away. */
  readonly countsForMs?: number | undefined;
}

/** One question, and what is known of its answer. */
class ServerQuestion {
  readonly #question: Question;
  readonly #runtime: Runtime;
  refusal: Refusal | undefined;
  /** Whether nothing stood against the server when it was last asked. */
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
   * Whether the answer to a request has to wait for that to the question. What is asked again and again has a place of its own in a
   * cluster, whose server may be silent while that of the request is not: it holds nobody up while the last good answer counts, and
   * then one request.
   */
  get isAwaited(): boolean {
    if (this.isOpen) return false;
    return !this.isRenewed || (!this.#hasFailed && !this.#counts());
  }

  /** Asks again; open meanwhile only if the last good answer still counts. @throws StoreError */
  renew(): Promise<void> {
    if (!this.#counts()) this.isOpen = false;
    return this.ask();
  }

  /** The connection was away. */
  serverMayHaveChanged(): void {
    this.isOpen = false;
    this.#openedAtMs = -Infinity;
    this.#hasFailed = false;
  }

  #counts(): boolean {
    const { countsForMs = Infinity } = this.#question;
    return this.#runtime.monotonicMs() - this.#openedAtMs < countsForMs;
  }

  /** Asks once for all callers that want to know. @throws StoreError */
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
 * Refuses to acquire from a server that must not be used, such as one that may evict locks.
 *
 * Invariants: a question is sent beside the first request, never before it, so that an acquire stays one round trip; after a
 * good answer it costs nothing; a question that fails changes nothing; and a server that was refused is asked again by
 * each acquire, so that mending it needs no restart of its clients.
 */
export class Guard {
  readonly #asked: readonly ServerQuestion[];
  readonly #runtime: Runtime;
  /** On the path of every acquire. */
  #isOpen: boolean;

  /** @param questions  none for a guard that lets everything pass */
  constructor(questions: readonly Question[], runtime: Runtime) {
    this.#asked = questions.map((question) => new ServerQuestion(question, runtime));
    this.#runtime = runtime;
    this.#isOpen = questions.length === 0;
  }

  /** True while there is nothing to ask and nothing to refuse. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The connection was away: it may lead to another server now. */
  serverMayHaveChanged(): void {
    for (const one of this.#asked) one.serverMayHaveChanged();
    this.#update();
  }

  /** Called as the client record is refreshed: asks again what counts for a while only. Never rejects. */
  renew(): void {
    for (const one of this.#asked.filter(({ isRenewed }) => isRenewed)) {
      const asking = one.renew().catch(() => {
        // What the server has not confirmed is asked again beside the next acquire.
        one.isOpen = false;
      });
      void asking.then(() => this.#update());
    }
    this.#update();
  }

  /**
   * Sends a request, with the questions beside it; its answer counts once those are answered too, or `timeoutMs` later.
   *
   * @throws the refusal; what the server has answered to the request is to be taken back
   * @throws as `send`; where the server was refused before, StoreError if it cannot be asked
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

  /** Asks by itself, for what must not be sent to a server that is refused. @throws the refusal */
  async check(lockName: string): Promise<void> {
    if (!this.#isOpen) await this.#ask();
    this.#refuse(lockName);
  }

  #refuse(lockName: string): void {
    for (const { refusal } of this.#asked) if (refusal !== undefined) throw refusal(lockName);
  }

  /** Asks what is not known; a question that fails stays unknown. */
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

// --- Whether a server may evict locks: every key of a lock has an expiry, so any policy but `noeviction` may take it while it is
// held, and the next acquire gets it as well.

/** What a server does when its memory is full. */
export interface MemoryPolicy {
  /** As `maxmemory-policy` has it. */
  readonly policy: string;
  /** `maxmemory`; 0 means no limit, and then nothing is evicted. */
  readonly maxmemoryBytes: number;
}

/** Whether a server with that policy may take locks away. */
export function evicts({ policy, maxmemoryBytes }: MemoryPolicy): boolean {
  return maxmemoryBytes > 0 && policy !== "noeviction";
}

/** What the question needs to know. */
export interface EvictionFacts {
  /** Asks the server; undefined if it does not show it. @throws StoreError */
  readonly read: () => Promise<MemoryPolicy | undefined>;
  /** Called once, if the server does not show it. */
  readonly onHidden: () => void;
}

/** Refuses a server that may evict locks. One that hides its policy passes, and is told of once. */
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

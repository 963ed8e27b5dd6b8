/**
 * Refuses to acquire from a server that may evict locks: every key of a lock has an expiry, so any policy but
 * `noeviction` may take it while it is held, and the next acquire gets it as well.
 *
 * Invariants: the question is sent beside the first request, never before it, so that an acquire stays one round
 * trip; after an answer that nothing is evicted it costs nothing; a question that fails changes nothing; and a server
 * that was found to evict is asked again by each acquire, so that mending it needs no restart of its clients.
 */
import { EvictionError } from "./errors.js";
import type { Runtime } from "./runtime.js";

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

/** What a guard needs to know. */
export interface EvictionFacts {
  /** Asks the server; undefined if it does not show it. @throws StoreError */
  readonly read: () => Promise<MemoryPolicy | undefined>;
  /** Called once, if the server does not show it. */
  readonly onHidden: () => void;
  readonly runtime: Runtime;
}

/** See the file header. */
export class EvictionGuard {
  readonly #facts: EvictionFacts | undefined;
  #isOpen: boolean;
  #evicting: MemoryPolicy | undefined;
  #asking: Promise<void> | undefined;
  #hasToldHidden = false;

  /** @param facts  undefined for a guard that lets everything pass and asks nothing */
  constructor(facts: EvictionFacts | undefined) {
    this.#facts = facts;
    this.#isOpen = facts === undefined;
  }

  /** True while there is nothing to ask and nothing to refuse. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The connection was away: it may lead to another server now. */
  doubt(): void {
    this.#isOpen = this.#facts === undefined;
  }

  /**
   * Sends a request, with the question beside it; its answer counts once that is answered too, or `timeoutMs` later.
   *
   * @throws EvictionError  the server may evict; what it has answered to the request is to be taken back
   * @throws as `send`; where the server was known to evict, StoreError if it cannot be asked
   */
  async pass<Answer>(lockName: string, send: () => Promise<Answer>, timeoutMs: number): Promise<Answer> {
    if (this.#evicting !== undefined) {
      await this.#ask();
      this.#refuse(lockName);
      return send();
    }
    const asking = this.#ask().catch(() => {});
    const answer = await send();
    if (!this.#isOpen) await this.#atMost(timeoutMs, asking);
    this.#refuse(lockName);
    return answer;
  }

  /** Asks by itself, for what must not be sent to a server that evicts. @throws EvictionError */
  async check(lockName: string): Promise<void> {
    if (!this.#isOpen) await this.#ask().catch(() => {});
    this.#refuse(lockName);
  }

  #refuse(lockName: string): void {
    if (this.#evicting !== undefined) throw new EvictionError(lockName, this.#evicting);
  }

  /** Asks once for all who want to know. @throws StoreError */
  #ask(): Promise<void> {
    this.#asking ??= this.#askOnce().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOnce(): Promise<void> {
    if (this.#facts === undefined) return;
    const found = await this.#facts.read();
    const isEvicting = found !== undefined && evicts(found);
    this.#evicting = isEvicting ? found : undefined;
    this.#isOpen = !isEvicting;
    if (found !== undefined || this.#hasToldHidden) return;
    this.#hasToldHidden = true;
    this.#facts.onHidden();
  }

  async #atMost(limitMs: number, asking: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const limit = this.#facts?.runtime.startTimer(resolve, limitMs, true);
      void asking.then(() => {
        limit?.cancel();
        resolve();
      });
    });
  }
}

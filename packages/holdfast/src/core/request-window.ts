/**
 * At most so many requests without an answer; the others wait for their turn, in the order in which they came.
 *
 * For clean-up that thousands of callers cause in one turn: sending all of it at once would block the event loop, and the
 * renewals of this process would wait behind it on the connection.
 */
import { StoreError } from "./errors.js";
import type { Runtime } from "./runtime.js";
import { SharedTimer } from "./shared-timer.js";

/**
 * If none was answered for so long, in ms, as many again are sent, about locks of which none is under way: a server that is silent,
 * or one of a cluster, would hold up all that wait for one time-out after the other.
 */
const SILENCE_MS = 25;

interface Waiting {
  readonly lock: string;
  readonly send: () => void;
  readonly refuse: (error: unknown) => void;
}

/** See the file header. */
export class RequestWindow {
  readonly #size: number;
  /** Of those that were sent since the server was last found silent. */
  #unanswered = 0;
  #silences = 0;
  /** How many are under way about each lock. */
  readonly #underWay = new Map<string, number>();
  #waiting: Waiting[] = [];
  /** Runs while requests wait. */
  readonly #silence: SharedTimer;

  /** @param size  how many may be unanswered, 1 or more */
  constructor(size: number, runtime: Runtime) {
    this.#size = size;
    this.#silence = new SharedTimer(runtime, () => this.#goOn());
  }

  /**
   * Sends now, or when enough of the requests before it have been answered.
   *
   * @param lock  what the request is about
   * @throws what the request throws; or, while it waits, the StoreError of a request about the same lock that the server did not
   *         answer, because thousands of time-outs one after the other would take minutes
   */
  send<Reply>(lock: string, request: () => Promise<Reply>): Promise<Reply> {
    if (this.#unanswered < this.#size) return this.#send(lock, request);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lock, send: () => void this.#send(lock, request).then(resolve, reject), refuse: reject });
      this.#silence.ensure(SILENCE_MS);
    });
  }

  #send<Reply>(lock: string, request: () => Promise<Reply>): Promise<Reply> {
    const reply = request();
    const silences = this.#silences;
    this.#unanswered += 1;
    this.#underWay.set(lock, (this.#underWay.get(lock) ?? 0) + 1);
    reply.then(
      () => this.#settled(lock, silences),
      (error: unknown) => {
        if (error instanceof StoreError && error.transient) this.#refuse(lock, error);
        this.#settled(lock, silences);
      },
    );
    return reply;
  }

  /** @param silences  how many there had been when it was sent: another request has its place since the next one */
  #settled(lock: string, silences: number): void {
    const left = (this.#underWay.get(lock) ?? 0) - 1;
    if (left > 0) this.#underWay.set(lock, left);
    else this.#underWay.delete(lock);
    if (silences !== this.#silences) return;
    this.#unanswered -= 1;
    this.#waiting.shift()?.send();
    this.#await();
  }

  /** Begins to wait for the next answer. */
  #await(): void {
    if (this.#waiting.length === 0) this.#silence.cancel();
    else this.#silence.start(SILENCE_MS);
  }

  #goOn(): void {
    const due = this.#waiting.filter(({ lock }) => !this.#underWay.has(lock)).slice(0, this.#size);
    if (due.length > 0) {
      const isDue = new Set(due);
      this.#waiting = this.#waiting.filter((one) => !isDue.has(one));
      this.#silences += 1;
      this.#unanswered = 0;
      for (const { send } of due) send();
    }
    this.#await();
  }

  #refuse(lock: string, error: StoreError): void {
    const refused = this.#waiting.filter((one) => one.lock === lock);
    this.#waiting = this.#waiting.filter((one) => one.lock !== lock);
    for (const { refuse } of refused) refuse(error);
  }
}

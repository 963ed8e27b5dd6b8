/**
 * At most so many requests without an answer; the others wait for their turn, in the order in which they came.
 *
 * For clean-up that thousands of callers cause in one turn: sending all of it at once would block the event loop, and the
 * renewals of this process would wait behind it on the connection.
 */
import { StoreError } from "./errors.js";

interface Waiting {
  readonly lock: string;
  readonly send: () => void;
  readonly refuse: (error: unknown) => void;
}

/** See the file header. */
export class RequestWindow {
  readonly #size: number;
  #unanswered = 0;
  #waiting: Waiting[] = [];

  /** @param size  how many may be unanswered, 1 or more */
  constructor(size: number) {
    this.#size = size;
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
      this.#waiting.push({ lock, send: () => this.#send(lock, request).then(resolve, reject), refuse: reject });
    });
  }

  #send<Reply>(lock: string, request: () => Promise<Reply>): Promise<Reply> {
    const reply = request();
    this.#unanswered += 1;
    reply.then(
      () => this.#settled(),
      (error: unknown) => {
        if (error instanceof StoreError && error.transient) this.#refuse(lock, error);
        this.#settled();
      },
    );
    return reply;
  }

  #settled(): void {
    this.#unanswered -= 1;
    this.#waiting.shift()?.send();
  }

  #refuse(lock: string, error: StoreError): void {
    const refused = this.#waiting.filter((one) => one.lock === lock);
    this.#waiting = this.#waiting.filter((one) => one.lock !== lock);
    for (const { refuse } of refused) refuse(error);
  }
}

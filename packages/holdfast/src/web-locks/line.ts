/** The order of the requests that one process makes for one name. */

/** A request in a line. */
export interface Entrant {
  readonly isShared: boolean;
  /** Sends the request. Called once, when all earlier requests are granted or in the queue. */
  go(): void;
}

/**
 * Sends one process's requests for one name in the order in which they were made.
 *
 * Requests in flight at the same time could overtake each other, for example on different connections of a pool, or if
 * one is retried. So a request is sent only after all earlier ones are placed: the server has granted them or put them
 * in the queue. Consecutive shared requests are sent together, because their order makes no difference.
 *
 * If a request gets no reply, all later ones are sent immediately, so that an unresponsive server delays each of them
 * only once. They are then served in the order in which they reach the server.
 */
export class Line {
  #waiting: Entrant[] = [];
  /** Requests that were sent but are not placed yet. */
  readonly #sent = new Set<Entrant>();

  /** Whether every request is placed. */
  get isEmpty(): boolean {
    return this.#sent.size === 0 && this.#waiting.length === 0;
  }

  /** Adds a request, and sends it if it may be sent. */
  enter(entrant: Entrant): void {
    this.#waiting.push(entrant);
    this.#advance();
  }

  /** Called when the request is placed or has ended. Repeated calls do nothing. */
  placed(entrant: Entrant): void {
    if (!this.#sent.delete(entrant)) this.#waiting = this.#waiting.filter((other) => other !== entrant);
    this.#advance();
  }

  /** Called when the request got no reply. */
  unanswered(entrant: Entrant): void {
    if (!this.#sent.delete(entrant)) return;
    for (const next of this.#waiting.splice(0)) this.#send(next);
    this.#advance();
  }

  /** Resolves when every request that is in the line now is placed, however many come later. */
  passed(): Promise<void> {
    return new Promise((resolve) => {
      const last: Entrant = {
        isShared: false,
        go: () => {
          this.placed(last);
          resolve();
        },
      };
      this.enter(last);
    });
  }

  #advance(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#maySend(next); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#send(next);
    }
  }

  #maySend({ isShared }: Entrant): boolean {
    return this.#sent.size === 0 || (isShared && [...this.#sent].every((sent) => sent.isShared));
  }

  #send(entrant: Entrant): void {
    this.#sent.add(entrant);
    entrant.go();
  }
}

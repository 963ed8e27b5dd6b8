/** The order of the requests that one process makes for one name. */

/** A request in a line. */
export interface Entrant {
  readonly isShared: boolean;
  /** Sends the request. Called once, when all requests before it have their place on the server. */
  go(): void;
}

/**
 * Sends the requests for one name in the order in which they were made.
 *
 * Requests that travel together may be overtaken, for example on different connections of a pool, or if the first of them has to
 * be repeated. So a request is sent when the server has replied to all earlier ones: each is granted, or has its place in the
 * queue. Shared requests in a row are sent together, because their order makes no difference.
 *
 * If a request gets no reply, all later ones are sent immediately, so that a server that does not reply delays each of them only
 * once. Their order is then the order in which they arrive.
 */
export class Line {
  #waiting: Entrant[] = [];
  /** Requests that were sent and have no place yet. */
  readonly #sent = new Set<Entrant>();

  /** Whether every request has its place. */
  get isEmpty(): boolean {
    return this.#sent.size === 0 && this.#waiting.length === 0;
  }

  /** Adds a request, and sends it if it may be sent. */
  enter(entrant: Entrant): void {
    this.#waiting.push(entrant);
    this.#advance();
  }

  /** The request has its place, or has ended. Repeated calls do nothing. */
  placed(entrant: Entrant): void {
    if (!this.#sent.delete(entrant)) this.#waiting = this.#waiting.filter((other) => other !== entrant);
    this.#advance();
  }

  /** The request got no reply. */
  unanswered(entrant: Entrant): void {
    if (!this.#sent.delete(entrant)) return;
    for (const next of this.#waiting.splice(0)) this.#send(next);
    this.#advance();
  }

  /** Resolves when every request that is in the line now has its place, however many come later. */
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

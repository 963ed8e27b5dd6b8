/** Subscribes to the messages of one entry when a caller first has to wait for it. */
import { type Inbox, UnsupportedError } from "holdfast";
import type { CacheProtocol } from "./protocol.js";

/** The subscription of one flight to the messages of its entry. */
export class Subscriber {
  readonly #protocol: CacheProtocol;
  readonly #onMessage: (message: string) => void;
  readonly #onOpen: () => void;
  #inbox: Inbox | undefined;
  #isOpening = false;
  #isDeaf = false;
  #isClosed = false;

  /** @param onOpen  called once subscribed, because earlier messages may have been missed */
  constructor(protocol: CacheProtocol, onMessage: (message: string) => void, onOpen: () => void) {
    this.#protocol = protocol;
    this.#onMessage = onMessage;
    this.#onOpen = onOpen;
  }

  /** Whether the flight is subscribed. */
  get isOpen(): boolean {
    return this.#inbox !== undefined;
  }

  /** Subscribes, unless already subscribed or the store cannot subscribe. If that fails, the next call tries again. */
  open(): void {
    if (this.#inbox !== undefined || this.#isOpening || this.#isDeaf || this.#isClosed) return;
    this.#isOpening = true;
    this.#protocol
      .listen((message) => {
        if (!this.#isClosed) this.#onMessage(message);
      })
      .then(
        (inbox) => {
          this.#isOpening = false;
          if (this.#isClosed) {
            void inbox.close();
            return;
          }
          this.#inbox = inbox;
          this.#onOpen();
        },
        (error: unknown) => {
          this.#isOpening = false;
          this.#isDeaf = error instanceof UnsupportedError;
        },
      );
  }

  /** Unsubscribes. No message is delivered afterward. */
  close(): void {
    this.#isClosed = true;
    void this.#inbox?.close();
  }
}

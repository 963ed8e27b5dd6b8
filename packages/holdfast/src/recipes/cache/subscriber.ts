/** Hears what is told of one entry, from the first time that somebody has to wait for it. */
import { type Inbox, UnsupportedError } from "../../index.js";
import type { CacheProtocol } from "./protocol.js";

/** See the file header. */
export class Subscriber {
  readonly #protocol: CacheProtocol;
  readonly #onMessage: (message: string) => void;
  readonly #onOpen: () => void;
  #inbox: Inbox | undefined;
  #isOpening = false;
  #isDeaf = false;
  #isClosed = false;

  /** @param onOpen  called once it hears: whatever was told before was missed */
  constructor(protocol: CacheProtocol, onMessage: (message: string) => void, onOpen: () => void) {
    this.#protocol = protocol;
    this.#onMessage = onMessage;
    this.#onOpen = onOpen;
  }

  /** Whether it hears. */
  get isOpen(): boolean {
    return this.#inbox !== undefined;
  }

  /** Listens, unless it does so already or never can. If it cannot now, the next call tries again. */
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

  close(): void {
    this.#isClosed = true;
    void this.#inbox?.close();
  }
}

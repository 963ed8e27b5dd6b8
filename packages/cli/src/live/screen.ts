/**
 * A full-screen terminal view that is redrawn repeatedly.
 *
 * Each redraw is a single write. It overwrites line by line and clears only the rest of each line, so the view does not
 * flicker. The previous content of the terminal is restored at the end.
 */
import type { Streams } from "../frame/streams.js";
import { clip } from "./clip.js";

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";
/** Terminals that support these sequences show the view only when it is complete. All others ignore them. */
const BEGIN = "\x1b[?2026h";
const END = "\x1b[?2026l";
const HOME = "\x1b[H";
const REST_OF_LINE = "\x1b[K";
const REST_OF_SCREEN = "\x1b[J";

/** A full-screen view on a terminal. */
export class Screen {
  readonly #out: Streams["stdout"] & { readonly rows?: number };
  readonly #onResize: () => void;
  #isOpen = false;
  #last: readonly string[] = [];
  readonly #stopped = (): void => this.#stop();
  readonly #continued = (): void => this.#start();

  /** @param onResize  called after the terminal was resized and the last view was redrawn */
  constructor(out: Streams["stdout"], onResize: () => void = () => {}) {
    this.#out = out;
    this.#onResize = () => {
      this.draw(this.#last);
      onResize();
    };
  }

  /** The number of lines that fit. */
  get rows(): number {
    return this.#out.rows ?? 24;
  }

  /** Takes over the terminal. */
  open(): void {
    this.#start();
    this.#out.on("resize", this.#onResize);
    process.on("SIGTSTP", this.#stopped);
    process.on("SIGCONT", this.#continued);
  }

  /** Shows these lines, cut to the size of the terminal. */
  draw(lines: readonly string[]): void {
    this.#last = lines;
    if (!this.#isOpen) return;
    const width = this.#out.columns ?? 80;
    const shown = lines.slice(0, this.rows).map((line) => clip(line, width) + REST_OF_LINE);
    this.#out.write(`${BEGIN}${HOME}${shown.join("\r\n")}${REST_OF_SCREEN}${END}`);
  }

  /** Restores the terminal. A second call does nothing. */
  close(): void {
    this.#out.off("resize", this.#onResize);
    process.off("SIGTSTP", this.#stopped);
    process.off("SIGCONT", this.#continued);
    this.#leave();
  }

  #start(): void {
    if (!this.#isOpen) this.#out.write(ENTER);
    this.#isOpen = true;
    this.draw(this.#last);
  }

  #leave(): void {
    if (this.#isOpen) this.#out.write(LEAVE);
    this.#isOpen = false;
  }

  #stop(): void {
    this.#leave();
    process.kill(process.pid, "SIGSTOP");
  }
}

/** Where a verb reads and writes; tests hand in their own. */

/** Input, output, and what the environment says about them. */
export interface Streams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What to do when whoever read stdout has gone, in place of ending at once; for who holds something then. */
  onReaderGone?(react: () => void): void;
}

/** SIGPIPE: what a shell reports of a program whose reader has gone. */
const READER_GONE = 141;

/**
 * Those of this process, each opened when it is first used: a child of `run` has them too, and opening a pipe changes how it
 * behaves for everybody who has it.
 *
 * A reader of stdout that goes away (`holdfast ls | head -1`) ends the output and is no failure to talk about. On stderr it
 * is ignored: who holds a lock must not be ended by a log that was closed.
 */
export class ProcessStreams implements Streams {
  readonly env: Streams["env"] = process.env;
  #hasOut = false;
  #hasErr = false;
  #readerGone = (): void => process.exit(READER_GONE);

  onReaderGone(react: () => void): void {
    this.#readerGone = react;
  }

  get stdin(): Streams["stdin"] {
    return process.stdin;
  }

  get stdout(): Streams["stdout"] {
    if (!this.#hasOut) {
      this.#hasOut = true;
      process.stdout.on("error", (error: NodeJS.ErrnoException) => {
        // EIO: it was a terminal.
        if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
        this.#readerGone();
      });
    }
    return process.stdout;
  }

  get stderr(): Streams["stderr"] {
    if (!this.#hasErr) {
      this.#hasErr = true;
      process.stderr.on("error", () => {});
    }
    return process.stderr;
  }

  /** Resolves when what was written to stdout has left. */
  async flush(): Promise<void> {
    if (this.#hasOut) await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  }
}

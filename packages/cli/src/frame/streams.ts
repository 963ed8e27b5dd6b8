/** The streams that a verb reads and writes. Tests pass in their own. */

/** Input, output, and the environment variables. */
export interface Streams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Sets what happens when the reader of stdout goes away. The default is to exit immediately, which is wrong for verbs
   * that hold a lock at that time.
   */
  onReaderGone?(react: () => void): void;
}

/** The exit code that shells report for a program ended by SIGPIPE. */
const READER_GONE = 141;

/**
 * The streams of this process. Each is opened at its first use, because a child of `run` inherits them too, and opening
 * a pipe changes its behavior for every process that has it.
 *
 * If the reader of stdout goes away (`holdfast ls | head -1`), the output ends without an error message. On stderr this
 * is ignored, because a closed log must not end a process that holds a lock.
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
        // EIO: the output was a terminal that is gone.
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

  /** Resolves when everything written to stdout has been passed to the system. */
  async flush(): Promise<void> {
    if (this.#hasOut) await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  }
}

/** A progress line: rewritten in place on a terminal, printed a few times elsewhere. */

/** Where the demo prints, such as `process.stdout`. */
export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Shows `done` out of `total`. */
export class Progress {
  readonly #output: Output;
  readonly #what: string;
  readonly #total: number;
  #shown = 0;

  constructor(output: Output, what: string, total: number) {
    this.#output = output;
    this.#what = what;
    this.#total = total;
  }

  show(done: number): void {
    // A hundred steps on a terminal, four lines in a log file.
    const step = this.#output.isTTY ? this.#total / 100 : this.#total / 4;
    if (done < this.#shown + step && done !== this.#total) return;
    this.#shown = done;
    const line = `  ${String(done).padStart(String(this.#total).length)} of ${this.#total} ${this.#what}`;
    this.#output.write(this.#output.isTTY ? `\r${line}${done === this.#total ? "\n" : ""}` : `${line}\n`);
  }
}

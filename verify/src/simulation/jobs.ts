/** Distributes seeds over several processes, each with its own range. */
import { fork } from "node:child_process";
import { argv } from "node:process";
import { addTotal, emptyTotal, type Total } from "./report.js";

/** The messages of a process that plays a range. */
export type Word = { readonly total: Total } | { readonly text: string };

/**
 * Plays the seeds in `jobs` processes of this program.
 *
 * @param forwarded  the other arguments of the command
 * @param onTotal  called with the sum so far whenever a process reports
 * @throws Error  a process ended without its result
 */
export async function playInJobs(
  range: { readonly first: number; readonly last: number },
  jobs: number,
  forwarded: readonly string[],
  write: (text: string) => void,
  onTotal: (total: Total) => void,
): Promise<Total> {
  const totals: Total[] = [];
  const sum = (): Total => {
    const total = emptyTotal();
    for (const own of totals) addTotal(total, own);
    return total;
  };
  const size = Math.ceil((range.last - range.first + 1) / jobs);
  const plays: Promise<void>[] = [];
  for (let job = 0; job < jobs; job += 1) {
    const first = range.first + job * size;
    const last = Math.min(range.last, first + size - 1);
    if (first > last) continue;
    totals[job] = emptyTotal();
    plays.push(
      new Promise((resolve, reject) => {
        const child = fork(argv[1] ?? "", [...forwarded, "--seeds", `${first}..${last}`], { silent: true });
        child.stderr?.on("data", (text: Buffer) => write(String(text)));
        child.stdout?.resume();
        child.on("message", (word: Word) => {
          if ("text" in word) write(word.text);
          else {
            totals[job] = word.total;
            onTotal(sum());
          }
        });
        child.on("exit", (code, signal) => {
          // Exit code 1 means that seeds have failed, which the totals report too.
          if (code === 0 || code === 1) resolve();
          else reject(new Error(`the process for seeds ${first}..${last} ended with ${signal ?? code}`));
        });
      }),
    );
  }
  await Promise.all(plays);
  return sum();
}

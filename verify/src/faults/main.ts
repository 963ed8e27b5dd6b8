/** The command of the fault runs: cells on real servers, side by side, and what came of them. See `USAGE`. */
import { argv, exit, stdout } from "node:process";
import type { Cell } from "./cell.js";
import { BUILT, CELLS } from "./matrix.js";
import { type Options, readOptions, USAGE } from "./options.js";
import { type CellOrder, Pool } from "./pool.js";
import { Progress, showDuration } from "./progress.js";
import { writeReport } from "./report/write.js";
import type { Subject } from "./subject.js";
import { subjectOf } from "./subjects/table.js";
import { isFailure, summary } from "./summary.js";

function list(): string {
  return CELLS.map(({ id, expectation, isQuick, column }) => {
    const remarks = [isQuick ? "quick" : "", BUILT.has(column) ? "" : "not built"].filter((remark) => remark !== "");
    return `${id.padEnd(20)} ${expectation.padEnd(9)} ${remarks.join(", ")}`.trimEnd();
  }).join("\n");
}

/** Each subject with the cells of its letters. The controls of our tokens switch something off in us, so no peer has them. */
function pairs(cells: readonly Cell[], subjects: readonly Subject[]): Pick<CellOrder, "cell" | "subject">[] {
  return subjects.flatMap(({ name, letters }) =>
    cells
      .filter(({ letter, row }) => letters.includes(letter) && (name === "holdfast" || !row.endsWith("-plain")))
      .map((cell) => ({ cell, subject: name })),
  );
}

async function run(options: Options): Promise<number> {
  const { seed, lastsMs, budgetMs, jobs, report } = options;
  const subjects = await Promise.all(options.subjects.map(subjectOf));
  const round = pairs(options.cells, subjects);
  if (round.length === 0) throw new RangeError("none of these cells is for this subject");
  const beganMs = performance.now();
  const endsMs = budgetMs === undefined ? undefined : beganMs + budgetMs;
  const total = endsMs === undefined ? round.length : undefined;
  const progress = new Progress(stdout, () => performance.now(), total, endsMs);
  const historyDirectory = report === undefined ? undefined : `${report}/histories`;
  let count = 0;
  const next = (): CellOrder | undefined => {
    const turn = Math.floor(count / round.length);
    const isOver = endsMs === undefined ? turn > 0 : performance.now() + lastsMs > endsMs;
    const pair = round[count % round.length];
    if (isOver || pair === undefined) return undefined;
    count += 1;
    const order = { ...pair, seed: seed + turn, lastsMs };
    return historyDirectory === undefined ? order : { ...order, historyDirectory };
  };
  const pool = new Pool(progress);
  let isInterrupted = false;
  process.once("SIGINT", () => {
    isInterrupted = true;
    pool.stop();
  });
  process.once("SIGTERM", () => pool.stop());
  process.once("exit", () => pool.stop());
  const time = budgetMs === undefined ? "one round" : `rounds for ${showDuration(budgetMs)}`;
  stdout.write(`${round.length} cells, ${time}, ${lastsMs / 1_000} s each, ${jobs} at once, seed ${seed}\n`);
  progress.start();
  await pool.run(next, jobs);
  progress.stop();
  const { verdicts } = progress;
  if (report !== undefined) {
    const facts = { seed, lastsMs, jobs, tookMs: performance.now() - beganMs, subjects };
    stdout.write(`report: ${writeReport(report, verdicts, facts)}\n`);
  }
  if (isInterrupted) stdout.write("interrupted\n");
  stdout.write(`${summary(verdicts, lastsMs)}\n`);
  return isInterrupted || verdicts.some(isFailure) ? 1 : 0;
}

async function main(): Promise<number> {
  try {
    const options = readOptions(argv.slice(2));
    if (!options.isHelp && !options.isList) return await run(options);
    stdout.write(`${options.isHelp ? USAGE : list()}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
    stdout.write(`${error.message}\n0 passed, 1 failed\n`);
    return 2;
  }
}

exit(await main());

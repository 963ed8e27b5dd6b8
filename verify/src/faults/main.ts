/** The command that runs cells of the fault matrix on real servers, several in parallel, and reports. See `USAGE`. */
import { writeFileSync } from "node:fs";
import { argv, exit, stdout } from "node:process";
import type { Cell } from "./cell.js";
import { isHoldfast } from "./liveness/build.js";
import { BESIDE, CELLS, isLiveness, LIVENESS_CELLS } from "./matrix.js";
import { type Options, readOptions, USAGE } from "./options.js";
import { type CellOrder, Pool } from "./pool.js";
import { Progress, showDuration } from "./progress.js";
import { DOCUMENT, type PeerReport, peerDocument } from "./report/peer-document.js";
import { readReport, versionsOf, writeReport } from "./report/write.js";
import type { Subject } from "./subject.js";
import { peerCells, STAND_INS } from "./subjects/peers.js";
import { subjectOf } from "./subjects/table.js";
import { summary, totalsOf } from "./summary.js";

function list(): string {
  return [...CELLS, ...BESIDE, ...LIVENESS_CELLS]
    .map(({ id, expectation, isQuick }) =>
      `${id.padEnd(20)} ${expectation.padEnd(9)} ${isQuick ? "quick" : ""}`.trimEnd(),
    )
    .join("\n");
}

/** Pairs subjects with cells. With `isSideBySide`, Holdfast runs only its peers' cells, ordered by cell. */
function pairs({ cells, isSideBySide }: Options, subjects: readonly Subject[]): Pick<CellOrder, "cell" | "subject">[] {
  const peers = subjects.filter(({ name }) => !isHoldfast(name));
  const taken = new Map(peers.map((peer) => [peer.name, peerCells(peer, cells)]));
  const builds = subjects.filter(({ name }) => isHoldfast(name));
  const same = new Map([...taken.values()].flat().map((cell) => [cell.id, cell]));
  for (const { name } of builds) taken.set(name, isSideBySide ? [...same.values()] : cells);
  const round = subjects.flatMap(({ name: subject }) => (taken.get(subject) ?? []).map((cell) => ({ cell, subject })));
  if (!isSideBySide) return round;
  const places = new Map(
    [...CELLS, ...STAND_INS, ...LIVENESS_CELLS].map(({ row, column }, index) => [`${row}/${column}`, index]),
  );
  const place = ({ cell: { row, column } }: { readonly cell: Cell }): number => places.get(`${row}/${column}`) ?? 0;
  return round.toSorted((a, b) => place(a) - place(b));
}

/** Writes the results of the peers to the document. */
function document(reports: readonly PeerReport[]): void {
  writeFileSync(DOCUMENT, peerDocument(reports));
  stdout.write(`document: ${DOCUMENT}\n`);
}

async function run(options: Options): Promise<number> {
  const { seed, lastsMs, budgetMs, jobs, report, library } = options;
  const subjects = await Promise.all(options.subjects.map(subjectOf));
  const round = pairs(options, subjects);
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
    const isOther = isLiveness(pair.cell) && library !== "ioredis";
    const order = { ...pair, seed: seed + turn, lastsMs, ...(isOther ? { library } : {}) };
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
  stdout.write(`${round.length} cells, ${time}, ${lastsMs / 1_000} s each, ${jobs} at the same time, seed ${seed}\n`);
  progress.start();
  await pool.run(next, jobs);
  progress.stop();
  const { verdicts } = progress;
  const facts = { seed, lastsMs, jobs, tookMs: performance.now() - beganMs, subjects };
  if (report !== undefined) stdout.write(`report: ${writeReport(report, verdicts, facts)}\n`);
  if (options.isToDocument && !isInterrupted) document([{ verdicts, facts, versions: versionsOf(facts) }]);
  if (isInterrupted) stdout.write("interrupted\n");
  stdout.write(`${summary(verdicts, lastsMs)}\n`);
  return isInterrupted || totalsOf(verdicts).failed > 0 ? 1 : 0;
}

async function main(): Promise<number> {
  try {
    const options = readOptions(argv.slice(2));
    if (options.isToDocument && options.from.length > 0) {
      document(options.from.map(readReport));
      return 0;
    }
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

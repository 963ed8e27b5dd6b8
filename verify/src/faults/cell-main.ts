/** The process of one cell: runs it, reports progress, and writes the history of a run that failed. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv, exit } from "node:process";
import { writeHistory } from "../history/json-lines.js";
import { isQuorum } from "./columns.js";
import { runLiveness } from "./liveness/run.js";
import { isLiveness } from "./matrix.js";
import type { OpenStage } from "./parts.js";
import type { CellMessage, CellOrder } from "./pool.js";
import { PRODUCTION } from "./production.js";
import { type Ran, runCell } from "./run.js";
import { runSuspended } from "./suspension.js";

const PROGRESS_MS = 1_000;

/** If the parent process is gone, kills the whole process group, which this process leads. */
process.on("disconnect", () => process.kill(-process.pid, "SIGKILL"));

function say(message: CellMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined) resolve();
    else process.send(message, () => resolve());
  });
}

function watch(open: OpenStage): void {
  setInterval(() => void say({ type: "progress", ...open.counts() }), PROGRESS_MS).unref();
}

function keep({ verdict, records }: Ran, directory: string): string {
  mkdirSync(directory, { recursive: true });
  const { cell, seed, subject } = verdict;
  const file = join(directory, `${cell.id.replaceAll("/", "-")}-${subject.replaceAll(/\W+/g, "-")}-${seed}.jsonl`);
  writeFileSync(file, writeHistory(records));
  return file;
}

const order = JSON.parse(argv[2] ?? "") as CellOrder;
const isSimulated = order.cell.row === "J07" && !isQuorum(order.cell.column);
const ran = await (isLiveness(order.cell)
  ? runLiveness(order)
  : isSimulated
    ? runSuspended(order)
    : runCell(order, PRODUCTION, watch));
let { verdict } = ran;
if (verdict.outcome !== "ok" && ran.records.length > 0 && order.historyDirectory !== undefined) {
  const file = keep(ran, order.historyDirectory);
  verdict = { ...verdict, notes: [...verdict.notes, `history: ${file}`] };
}
await say({ type: "verdict", verdict });
exit(0);

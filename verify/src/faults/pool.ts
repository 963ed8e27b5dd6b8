/**
 * Runs cells in parallel, each in its own process group with its servers and clients.
 *
 * A row with fifty processes runs alone, because next to another one it would only measure the load of the machine.
 *
 * A cell that does not finish is killed by the id of its group, and counts as void, as do all cells if the run itself
 * is interrupted.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isLiveness } from "./matrix.js";
import type { RunSettings } from "./run.js";
import type { CellVerdict } from "./verdict.js";

/** A message from the process of a cell. */
export type CellMessage =
  | { readonly type: "progress"; readonly operations: number; readonly faults: number }
  | { readonly type: "verdict"; readonly verdict: CellVerdict };

/** The settings of the process of a cell, as JSON in its first argument. */
export interface CellOrder extends RunSettings {
  /** Where to write the history of a failed run; absent for nowhere. */
  readonly historyDirectory?: string;
}

/** Receives the progress. */
export interface Watcher {
  /** Totals of a running cell. */
  progress(order: CellOrder, operations: number, faults: number): void;
  done(verdict: CellVerdict): void;
}

const PROGRAM = fileURLToPath(new URL("cell-main.js", import.meta.url));
const CROWDED: ReadonlySet<string> = new Set(["J08"]);
/** The duration of the longest liveness scenario, including server starts and the longest observed wait. */
const SCENARIO_MS = 480_000;
/** Time in addition to twice the duration of a cell: for opening, for leases that have to end, and for the search. */
const PATIENCE_MS = 180_000;

/** The pool of cells. */
export class Pool {
  readonly #running = new Set<ChildProcess>();
  readonly #watcher: Watcher;
  readonly #program: string;
  readonly #patienceMs: number;
  #isStopped = false;

  constructor(watcher: Watcher, program: string = PROGRAM, patienceMs: number = PATIENCE_MS) {
    this.#watcher = watcher;
    this.#program = program;
    this.#patienceMs = patienceMs;
  }

  /** Runs the cells that `next` returns, at most `jobs` at the same time, until it returns undefined. */
  async run(next: () => CellOrder | undefined, jobs: number): Promise<void> {
    const underWay = new Set<Promise<CellVerdict>>();
    let crowd: Promise<CellVerdict> | undefined;
    const play = async (order: CellOrder): Promise<CellVerdict> => {
      while (crowd !== undefined) await crowd;
      // Cells that measure bounds run alone too.
      const isCrowd = CROWDED.has(order.cell.row) || isLiveness(order.cell);
      const others = isCrowd ? [...underWay] : [];
      const playing = Promise.all(others).then(() => this.#runOne(order));
      underWay.add(playing);
      if (isCrowd) crowd = playing;
      const verdict = await playing;
      underWay.delete(playing);
      if (isCrowd) crowd = undefined;
      return verdict;
    };
    const lane = async (): Promise<void> => {
      for (let order = next(); order !== undefined && !this.#isStopped; order = next())
        this.#watcher.done(await play(order));
    };
    await Promise.all(Array.from({ length: jobs }, lane));
  }

  /** Stops everything immediately. `run` resolves soon after. */
  stop(): void {
    this.#isStopped = true;
    for (const child of this.#running) endGroup(child);
  }

  async #runOne(order: CellOrder): Promise<CellVerdict> {
    // All files of a cell are in this folder, so that nothing remains of a killed cell.
    const directory = await mkdtemp(join(tmpdir(), "holdfast-cell-"));
    const beganMs = performance.now();
    try {
      const said = await this.#listen(order, directory);
      if (typeof said !== "string") return said;
      return {
        cell: order.cell,
        seed: order.seed,
        subject: order.subject,
        outcome: "void",
        operations: 0,
        faults: 0,
        tookMs: performance.now() - beganMs,
        breaches: [],
        checked: {},
        notes: [said],
      };
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  /** The verdict, or why there is none. */
  #listen(order: CellOrder, directory: string): Promise<CellVerdict | string> {
    return new Promise((resolve) => {
      const child = fork(this.#program, [JSON.stringify(order)], {
        detached: true,
        env: { ...process.env, TMPDIR: directory },
        stdio: ["ignore", "ignore", "pipe", "ipc"],
      });
      this.#running.add(child);
      let verdict: CellVerdict | undefined;
      let errors = "";
      let isLate = false;
      child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors = (errors + text).slice(-4_000)));
      child.on("message", (message: CellMessage) => {
        if (message.type === "verdict") verdict = message.verdict;
        else this.#watcher.progress(order, message.operations, message.faults);
      });
      const limitMs = isLiveness(order.cell) ? SCENARIO_MS : 2 * order.lastsMs + this.#patienceMs;
      const deadline = setTimeout(() => {
        isLate = true;
        endGroup(child);
      }, limitMs);
      child.on("error", (error) => (errors += String(error)));
      // Its leader may have ended while others of the group keep the pipe open.
      child.on("exit", (code) => code !== 0 && endGroup(child));
      child.on("close", (code, signal) => {
        clearTimeout(deadline);
        this.#running.delete(child);
        if (isLate) resolve(`it did not come to an end within ${Math.round(limitMs / 1_000)} s, and was killed`);
        else resolve(verdict ?? `its process ended with ${signal ?? code} and no verdict: ${errors.trim()}`);
      });
    });
  }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // No process of the group is left.
  }
}

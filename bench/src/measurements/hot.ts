/**
 * One name that everybody wants: 2 processes × N callers, empty sections, each caller at it again at once.
 *
 * Exclusion is checked after each run by the same callers, with sections that read a guarded value, yield, and
 * write it plus one: an overlap loses an update. Checked apart, because a section that does something is not empty.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { jain } from "../statistics.js";
import { readValue, writeValue } from "./guarded-value.js";
import type { Order, Result } from "./hot-caller.js";
import type { Measurement } from "./measurement.js";

const PROCESSES = 2;
const CHECK_SECONDS = 0.5;
const CALLER = fileURLToPath(new URL("./hot-caller.js", import.meta.url));

/** See the file header. */
export const hot: Measurement = {
  name: "hot",
  title: ({ callers }) => `hot key: ${PROCESSES} processes × ${callers} callers, empty sections, exclusion checked`,
  figures: [
    { name: "rate", unit: "sections/s", digits: 0 },
    { name: "longest wait", unit: "ms", digits: 0 },
    { name: "Jain's index", unit: "", digits: 3 },
  ],

  async prepare(adapter, { connection, seconds, callers }) {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-hot-"));
    const guarded = join(directory, "guarded-value");
    const file = openSync(guarded, "w+");
    const processes = Array.from({ length: PROCESSES }, () =>
      fork(CALLER, [adapter.name, JSON.stringify(connection), `${callers}`, guarded]),
    );
    // Whatever ends this process must not leave them behind.
    const endAll = (): void => {
      for (const child of processes) child.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    };
    process.once("exit", endAll);

    const everybody = async (order: Order): Promise<readonly Result[]> =>
      Promise.all(processes.map((child) => ask(child, order)));
    const close = async (): Promise<void> => {
      await Promise.all(processes.map(end));
      process.off("exit", endAll);
      closeSync(file);
      rmSync(directory, { recursive: true, force: true });
    };
    try {
      await everybody({ seconds: seconds / 2, guarded: false });
    } catch (error) {
      await close();
      throw error;
    }

    return {
      async run() {
        const results = await everybody({ seconds, guarded: false });
        writeValue(file, 0);
        const checked = (await everybody({ seconds: CHECK_SECONDS, guarded: true })).map(({ entered }) => entered);
        const entered = checked.reduce((total, count) => total + count, 0);
        if (readValue(file) !== entered) {
          throw new Error(`exclusion was broken: ${entered} sections left the guarded value at ${readValue(file)}`);
        }
        const sections = results.flatMap((result) => result.sections);
        const total = sections.reduce((sum, count) => sum + count, 0);
        return [total / seconds, Math.max(...results.map((result) => result.longestWaitMs)), jain(sections)];
      },
      close,
    };
  },
};

function ask(child: ChildProcess, order: Order): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`a calling process ended early, with ${code}`));
    child.once("exit", onExit);
    child.once("message", (result) => {
      child.off("exit", onExit);
      // Sent by hot-caller.ts and by nobody else.
      resolve(result as Result);
    });
    child.send(order);
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  if (child.connected) child.disconnect();
  await exited;
}

/** A pipe that is nearly full and does not wait, as a program on an event loop hands it to those that it starts. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { vi } from "vitest";
import { textIn } from "./command.js";

const PAGE = 4_096;
const { O_NONBLOCK, O_RDWR } = constants;

/**
 * Runs a program on such a pipe, and reads it as soon as the program has written what it could.
 *
 * @param place    where the pipe is made: no file yet
 * @param program  and its words, with 4 kB to 60 kB to say
 * @returns its exit code and all that it said
 */
export async function throughFullPipe(
  place: string,
  program: readonly string[],
): Promise<{ code: number | null; stdout: string }> {
  execFileSync("mkfifo", [place]);
  const pipe = openSync(place, O_RDWR | O_NONBLOCK);
  try {
    let before = fill(pipe) - readSync(pipe, Buffer.alloc(PAGE));
    // Node makes what it hands on as 0, 1 or 2 wait.
    const child = spawn("sh", ["-c", 'exec "$@" >&3', "sh", ...program], {
      stdio: ["ignore", "ignore", "inherit", pipe],
    });
    const closed = once(child, "close") as Promise<[number | null]>;
    await vi.waitFor(
      () => {
        if (child.exitCode === null && bytesWrittenBy(child.pid) < PAGE) throw new Error("it has not written yet");
      },
      { timeout: 100_000, interval: 10 },
    );
    let said = "";
    const drain = (): void => {
      const bytes = drained(pipe);
      said += bytes.subarray(Math.min(before, bytes.length)).toString();
      before = Math.max(0, before - bytes.length);
    };
    const timer = setInterval(drain, 10);
    const [code] = await closed;
    clearInterval(timer);
    drain();
    return { code, stdout: said };
  } finally {
    closeSync(pipe);
  }
}

/** @returns how many bytes it took */
function fill(pipe: number): number {
  let count = 0;
  try {
    for (;;) count += writeSync(pipe, Buffer.alloc(PAGE, "."));
  } catch {
    return count;
  }
}

function drained(pipe: number): Buffer {
  const bytes = Buffer.alloc(20 * PAGE);
  let at = 0;
  try {
    while (at < bytes.length) at += readSync(pipe, bytes, at, bytes.length - at, null);
  } catch {
    // Nothing more at the moment.
  }
  return bytes.subarray(0, at);
}

function bytesWrittenBy(pid: number | undefined): number {
  return Number(/^wchar: (\d+)$/m.exec(textIn(`/proc/${pid}/io`) ?? "")?.[1] ?? 0);
}

/** Provides a pipe that is nearly full and non-blocking, as programs with an event loop pass it to their children. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { vi } from "vitest";
import { textIn } from "./command.js";

const PAGE = 4_096;
const { O_NONBLOCK, O_RDWR } = constants;

/**
 * Runs a program with such a pipe as its output, and reads the pipe as soon as the program has filled it.
 *
 * @param place    the path of the pipe; must not exist yet
 * @param program  the program and its arguments; it must print 4 kB to 60 kB
 * @returns its exit code and its whole output
 */
export async function throughFullPipe(
  place: string,
  program: readonly string[],
): Promise<{ code: number | null; stdout: string }> {
  execFileSync("mkfifo", [place]);
  const pipe = openSync(place, O_RDWR | O_NONBLOCK);
  try {
    let before = fill(pipe) - readSync(pipe, Buffer.alloc(PAGE));
    // Node makes the descriptors that it passes as 0, 1 or 2 blocking, so pass this one as 3.
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

/** @returns the number of bytes that fit into the pipe */
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
    // The pipe is empty at the moment.
  }
  return bytes.subarray(0, at);
}

function bytesWrittenBy(pid: number | undefined): number {
  return Number(/^wchar: (\d+)$/m.exec(textIn(`/proc/${pid}/io`) ?? "")?.[1] ?? 0);
}

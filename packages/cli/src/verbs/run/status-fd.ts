/** The descriptor of `--status-fd`: one that whoever started us has opened for it, and none of our own. */
import { fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { usageError } from "../../frame/exit-codes.js";

/**
 * Node has descriptors of its own, numbered like anybody's, and a line written to one of them would be a fault that nobody
 * finds. Linux tells what they are.
 *
 * @throws CliError 64  nothing is open there to write to
 */
export function checkStatusFd(fd: number): void {
  if (isOpen(fd) && (process.platform !== "linux" || isGivenToUs(fd))) return;
  throw usageError(`--status-fd must be an open descriptor, as by ${fd}>FILE; ${fd} is not open`);
}

function isOpen(fd: number): boolean {
  try {
    fstatSync(fd);
    return true;
  } catch {
    return false;
  }
}

function isGivenToUs(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    const isReadOnly = (Number.parseInt(flags, 8) & 3) === 0;
    const target = linkOf(fd);
    // A pipe of which both ends are here is for ourselves.
    const ends = readdirSync("/proc/self/fd").filter((other) => linkOf(Number(other)) === target).length;
    return !isReadOnly && !target.startsWith("anon_inode:") && !(target.startsWith("pipe:") && ends > 1 && fd > 2);
  } catch {
    return true; // no /proc to ask
  }
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

/**
 * Checks the descriptor of `--status-fd`: the caller must have opened it, and it must not be one that Node uses
 * internally.
 */
import { fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { usageError } from "../../frame/exit-codes.js";

/**
 * Refuses descriptors that Node opened for itself, because a line written to one of them would cause a fault that is
 * hard to find. Only Linux shows what a descriptor refers to.
 *
 * @throws CliError 64  nothing writable is open at this descriptor
 */
export function checkStatusFd(fd: number): void {
  if (isOpen(fd) && (process.platform !== "linux" || isGivenToUs(fd))) return;
  throw usageError(`--status-fd must be an open descriptor, for example with ${fd}>FILE; ${fd} is not open`);
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
    // A pipe with both ends in this process is internal to Node.
    const ends = readdirSync("/proc/self/fd").filter((other) => linkOf(Number(other)) === target).length;
    return !isReadOnly && !target.startsWith("anon_inode:") && !(target.startsWith("pipe:") && ends > 1 && fd > 2);
  } catch {
    return true; // without /proc the descriptor cannot be checked
  }
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

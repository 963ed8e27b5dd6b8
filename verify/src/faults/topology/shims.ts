/**
 * Libraries that are preloaded into a server: one changes its wall clock, one records what it has synced.
 *
 * They are compiled on demand with the machine's C compiler. Without one, the faults that need them are reported as
 * unavailable.
 */

import { execFile } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The available libraries. */
export type ShimName = "clock-shim" | "sync-shim";

const COMPILERS = ["cc", "gcc", "clang"];
const built = new Map<ShimName, Promise<string>>();
let directory: string | undefined;
process.on("exit", () => {
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
});

/**
 * The path of the compiled library. It is compiled once per process, and deleted when the process ends.
 *
 * @throws Error  there is no C compiler, or compilation fails; the message says which
 */
export function shim(name: ShimName): Promise<string> {
  let path = built.get(name);
  if (path === undefined) {
    path = compile(name);
    built.set(name, path);
  }
  return path;
}

async function compile(name: ShimName): Promise<string> {
  // This path works from `src` and from `dist`, which contains no C files.
  const source = fileURLToPath(new URL(`../../../src/faults/topology/${name}.c`, import.meta.url));
  directory ??= mkdtempSync(join(tmpdir(), "holdfast-shims-"));
  const target = join(directory, `${name}.so`);
  for (const compiler of COMPILERS) {
    try {
      await promisify(execFile)(compiler, ["-O2", "-shared", "-fPIC", "-pthread", "-o", target, source]);
      return target;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`there is no C compiler (${COMPILERS.join(", ")}), so ${name} cannot be built`);
}

/** The wall clock of one server, controlled through a file that the server has mapped. */
export class BentClock {
  readonly #file: number;
  readonly path: string;
  #offsetUs = 0n;

  constructor(path: string) {
    this.path = path;
    writeFileSync(path, Buffer.alloc(16));
    this.#file = openSync(path, "r+");
  }

  /** Sets its offset, and lets it run. */
  step(offsetMs: number): void {
    this.#offsetUs = BigInt(Math.round(offsetMs * 1_000));
    this.#write(0, this.#offsetUs);
    this.#write(8, 0n);
  }

  /** Stops it at the current time. */
  freeze(): void {
    // Adds 1 ms because Date.now() truncates, and a clock that stops must not go back.
    this.#write(8, BigInt(Date.now() + 1) * 1_000n + this.#offsetUs);
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(position: number, value: bigint): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    writeSync(this.#file, bytes, 0, 8, position);
  }
}

const PLACES = 64;

/** How much of each file a server has synced, in a file that the server has mapped. */
export class SyncLog {
  readonly #file: number;
  readonly path: string;

  constructor(path: string) {
    this.path = path;
    writeFileSync(path, Buffer.alloc(8 + PLACES * 16));
    this.#file = openSync(path, "r+");
  }

  /** Makes every sync take this much longer, so that a kill is likely to hit the server before it. */
  slowDown(ms: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(Math.round(ms * 1_000)));
    writeSync(this.#file, bytes, 0, 8, 0);
  }

  /** The length of the file at its last sync; undefined if it was never synced. */
  syncedLength(inode: number): number | undefined {
    const bytes = Buffer.alloc(PLACES * 16);
    readSync(this.#file, bytes, 0, bytes.length, 8);
    for (let at = 0; at < bytes.length; at += 16) {
      if (bytes.readBigUInt64LE(at) === BigInt(inode)) return Number(bytes.readBigUInt64LE(at + 8));
    }
    return undefined;
  }

  close(): void {
    closeSync(this.#file);
  }
}

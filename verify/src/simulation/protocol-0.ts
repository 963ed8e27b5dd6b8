/**
 * The library before grants by message had to be confirmed, for one process among others with the present version.
 *
 * It is the build in `verify/baseline`, with its own scripts and lease computation. It shares the error classes of
 * the present build, which have not changed, so that checks need only one set of classes.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import * as holdfast from "holdfast";
import type { createHoldfastOn } from "holdfast/simulation";
import { Random } from "./random.js";

type Create = typeof createHoldfastOn;

/** The global under which the old modules find this program's error classes, however the program was loaded. */
const ERRORS = Symbol.for("holdfast-verify.errors");
const ARCHIVE = fileURLToPath(new URL("../../baseline/holdfast-protocol-0.tgz", import.meta.url));
/** The random stream: in the upper half of the seed space, which nothing else uses. */
const STREAM = 29 * 4_294_967_296;
/** Kinds of locks with hand-over for which the judges need not know the old scripts' keys. */
const KINDS: ReadonlySet<string> = new Set([
  "mutex",
  "retained-mutex",
  "reentrant-mutex",
  "multi-lock",
  "election",
  "semaphore",
  "read-write-lock",
]);

let loaded: Promise<Create> | undefined;
let create: Create | undefined;

/** The index of the old process of a run; undefined for most runs. */
export function oldProcessOf(seed: number, kind: string, processCount: number): number | undefined {
  const random = new Random(seed + STREAM);
  return KINDS.has(kind) && random.chance(0.12) ? random.whole(0, processCount - 1) : undefined;
}

/**
 * Whether a property is judged in a history with both versions. The sweeps do not know the polling interval of old
 * processes.
 */
export function isPromisedBeside(property: string): boolean {
  return !/^L[1236]$/.test(property);
}

/** Unpacks and loads the build once. */
export async function loadProtocol0(): Promise<void> {
  loaded ??= unpack();
  create = await loaded;
}

/** Same as `createHoldfastOn`. Call `loadProtocol0` first. */
export function createProtocol0(...options: Parameters<Create>): ReturnType<Create> {
  if (create === undefined) throw new Error("the build of protocol 0 is not loaded");
  return create(options[0], options[1]);
}

async function unpack(): Promise<Create> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-protocol-0-"));
  try {
    await promisify(execFile)("tar", ["-xzf", ARCHIVE, "-C", folder]);
    const dist = join(folder, "package/dist");
    await shareErrors(join(dist, "core/errors.js"));
    const module = (await import(pathToFileURL(join(dist, "simulation.js")).href)) as { createHoldfastOn: Create };
    return module.createHoldfastOn;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function shareErrors(file: string): Promise<void> {
  const names = Array.from((await readFile(file, "utf8")).matchAll(/^export class (\w+)/gm), ([, name]) => name);
  Object.assign(globalThis, { [ERRORS]: holdfast });
  const lines = names.map((name) => `export const ${name} = errors.${name};`);
  await writeFile(file, [`const errors = globalThis[Symbol.for("${ERRORS.description}")];`, ...lines, ""].join("\n"));
}

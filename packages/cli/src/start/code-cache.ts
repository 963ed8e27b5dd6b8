/**
 * Loads a file of CommonJS with what V8 compiled of it the last time, kept beside it.
 *
 * To compile the command takes a third of its start. What is kept is of one V8, and of this very text: it is found by the one
 * and checked against the other. Whoever could change it could change the code as well, since both lie in one folder; where
 * that cannot be written to, everything is compiled each time.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire, Module } from "node:module";
import { dirname } from "node:path";
import { Script } from "node:vm";

const DIGEST_BYTES = 32; // of SHA-256
/** V8 forgets what it compiled and did not use for long, and a cache without it would be kept for good. */
const LONGEST_LIFE_MS = 60_000;

/**
 * Runs the file; for `require` it is loaded then.
 *
 * @param file  absolute, with its links resolved
 */
export function loadWithCache(file: string): void {
  const source = readFileSync(file, "utf8");
  const isWanted = process.env.NODE_DISABLE_COMPILE_CACHE === undefined;
  const place = `${file}.${process.version}-${process.arch}.cache`;
  const cachedData = isWanted ? compiledBefore(place, source) : undefined;
  // As Node does it; the line that names a program is none to run.
  const code = `(function (exports, require, module, __filename, __dirname) {${source.replace(/^#!/, "//")}\n})`;
  const script = new Script(code, { filename: file, ...(cachedData === undefined ? {} : { cachedData }) });
  if (isWanted && (cachedData === undefined || script.cachedDataRejected === true)) {
    process.once("exit", (exitCode) => {
      // What failed may have left something to do for those that listen after us.
      if (exitCode === 0 && performance.now() < LONGEST_LIFE_MS) keep(place, source, script);
    });
  }
  const module = new Module(file);
  module.filename = file;
  const require = createRequire(file);
  require.cache[file] = module;
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
  module.loaded = true;
}

/** Undefined if there is none, or if it is not whole, or of another text. */
function compiledBefore(place: string, source: string): Buffer | undefined {
  try {
    const kept = readFileSync(place);
    const compiled = kept.subarray(DIGEST_BYTES);
    return digestOf(source, compiled).equals(kept.subarray(0, DIGEST_BYTES)) ? compiled : undefined;
  } catch {
    return undefined;
  }
}

/** By name in one step, since others may be reading or writing it. Never throws. */
function keep(place: string, source: string, script: Script): void {
  const draft = `${place}.${process.pid}`;
  try {
    accessSync(dirname(place), constants.W_OK);
    const compiled = script.createCachedData();
    try {
      writeFileSync(draft, Buffer.concat([digestOf(source, compiled), compiled]), { flag: "wx" });
      renameSync(draft, place);
    } finally {
      rmSync(draft, { force: true });
    }
  } catch {
    // Then it is compiled next time, too.
  }
}

function digestOf(source: string, compiled: Buffer): Buffer {
  return createHash("sha256").update(source).update(compiled).digest();
}

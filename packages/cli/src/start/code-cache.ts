/**
 * Loads a file of CommonJS with what V8 compiled of it the last time, kept beside it.
 *
 * To compile the command takes a third of its start. What is kept is of one V8, and of this very text: it is found by the one
 * and checked against the other. Neither tells who made it, and V8 runs what it is given: it is taken only from somebody who
 * could change the command as well, or this process, and only where nobody else can write. In a folder that the group or all
 * may write to, and in one that we may not, everything is compiled each time.
 */
import { isAscii } from "node:buffer";
import { createHash } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire, Module } from "node:module";
import { dirname } from "node:path";
import { Script } from "node:vm";

const DIGEST_BYTES = 32; // of SHA-256
/** V8 forgets what it compiled and did not use for long, and a cache without it would be kept for good. */
const LONGEST_LIFE_MS = 60_000;
/** Whoever starts the command next may be another user. */
const READABLE = 0o644;
const WRITABLE_BY_OTHERS = 0o022;
/** Neither through a link nor, where it is a pipe, waiting for somebody to write. */
const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Runs the file; for `require` it is loaded then.
 *
 * @param file  absolute, with its links resolved
 */
export function loadWithCache(file: string): void {
  const bytes = readFileSync(file);
  const isWanted = process.env.NODE_DISABLE_COMPILE_CACHE === undefined;
  const place = `${file}.${process.version}-${process.arch}.cache`;
  const cachedData = isWanted ? compiledBefore(place, file, bytes) : undefined;
  const source = bytes.toString(isAscii(bytes) ? "latin1" : "utf8");
  // As Node does it; the line that names a program is none to run.
  const code = `(function (exports, require, module, __filename, __dirname) {${source.replace(/^#!/, "//")}\n})`;
  const script = new Script(code, { filename: file, ...(cachedData === undefined ? {} : { cachedData }) });
  if (isWanted && (cachedData === undefined || script.cachedDataRejected === true)) {
    process.once("exit", (exitCode) => {
      // What failed may have left something to do for those that listen after us.
      if (exitCode === 0 && performance.now() < LONGEST_LIFE_MS) keep(place, bytes, script);
    });
  }
  const module = new Module(file);
  module.filename = file;
  const require = createRequire(file);
  require.cache[file] = module;
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
  module.loaded = true;
}

/** Undefined if there is none, or if it is not whole, of another text, or of somebody who is not trusted. */
function compiledBefore(place: string, file: string, source: Buffer): Buffer | undefined {
  try {
    const descriptor = openSync(place, OPEN);
    try {
      if (!isTrusted(fstatSync(descriptor), statSync(file).uid) || isOpenToOthers(dirname(place))) return undefined;
      const kept = readFileSync(descriptor);
      const compiled = kept.subarray(DIGEST_BYTES);
      return digestOf(source, compiled).equals(kept.subarray(0, DIGEST_BYTES)) ? compiled : undefined;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  }
}

/**
 * Whether only somebody who is trusted can have written it: the owner of the command, root, or who runs it.
 *
 * @param commandUid  who owns the command
 */
export function isTrusted(kept: Pick<Stats, "uid" | "mode" | "isFile">, commandUid: number): boolean {
  const isOfOurs = [commandUid, 0, process.geteuid?.()].includes(kept.uid);
  return kept.isFile() && isOfOurs && (kept.mode & WRITABLE_BY_OTHERS) === 0;
}

/** A sticky folder, too: others cannot replace what is there, but be the first to put something there. */
function isOpenToOthers(folder: string): boolean {
  return (statSync(folder).mode & WRITABLE_BY_OTHERS) !== 0;
}

/** By name in one step, since others may be reading or writing it. Never throws. */
function keep(place: string, source: Buffer, script: Script): void {
  const draft = `${place}.${process.pid}`;
  try {
    accessSync(dirname(place), constants.W_OK);
    if (isOpenToOthers(dirname(place))) return;
    const compiled = script.createCachedData();
    const descriptor = openSync(draft, "wx", READABLE);
    try {
      // Whatever the umask is: it may add nobody who writes, nor take away those who read.
      fchmodSync(descriptor, READABLE);
      writeFileSync(descriptor, Buffer.concat([digestOf(source, compiled), compiled]));
      renameSync(draft, place);
    } finally {
      closeSync(descriptor);
      rmSync(draft, { force: true });
    }
  } catch {
    // Then it is compiled next time, too.
  }
}

function digestOf(source: Buffer, compiled: Buffer): Buffer {
  return createHash("sha256").update(source).update(compiled).digest();
}

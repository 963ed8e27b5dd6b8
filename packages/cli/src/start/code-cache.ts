/**
 * Loads a CommonJS file together with the code that V8 compiled for it in an earlier run. The compiled code is cached
 * in a file next to it.
 *
 * Compiling the command takes a third of its start-up time. The name of the cache file contains the version of Node,
 * and its content starts with a digest of the source and the compiled code. Neither proves who wrote the cache, and V8
 * runs whatever it contains. So the cache is used only if its owner is the owner of the command, root or the current
 * user, and only if no other user can write it. In a folder that the group or others may write to, or that this process
 * may not write to, the file is compiled at every start.
 */
import { isAscii } from "node:buffer";
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
import { dirname } from "node:path";
import type { Script } from "node:vm";

const DIGEST_BYTES = 32; // of SHA-256
/**
 * V8 discards compiled functions that have not been used for a while. After a longer run, they would be missing from
 * the cache permanently.
 */
const LONGEST_LIFE_MS = 60_000;
/** The next run of the command may be by another user, who must be able to read the cache. */
const READABLE = 0o644;
const WRITABLE_BY_OTHERS = 0o022;
const BEGIN = Buffer.from("(function (exports, require, module, __filename, __dirname) {");
const END = Buffer.from("\n})");
/** Do not follow a link, and do not block if the file is a pipe without a writer. */
const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Runs the file and registers it, so that `require` treats it as loaded.
 *
 * @param file  absolute path with links resolved
 */
export function loadWithCache(file: string): void {
  // Loaded only here, because the module that prints help imports this one.
  const { createRequire, Module } = process.getBuiltinModule("node:module");
  const { Script } = process.getBuiltinModule("node:vm");
  const bytes = readFileSync(file);
  const isWanted = process.env.NODE_DISABLE_COMPILE_CACHE === undefined;
  const place = `${file}.${process.version}-${process.arch}.cache`;
  const cachedData = isWanted ? compiledBefore(place, file, bytes) : undefined;
  // The wrapper that Node uses, as one string, because each copy of the source costs time. A `#!` line is not
  // JavaScript, so it becomes a comment.
  const wrapped = Buffer.concat([BEGIN, bytes, END]);
  if (bytes.toString("latin1", 0, 2) === "#!") wrapped.write("//", BEGIN.length);
  const code = wrapped.toString(isAscii(wrapped) ? "latin1" : "utf8");
  const script = new Script(code, { filename: file, ...(cachedData === undefined ? {} : { cachedData }) });
  if (isWanted && (cachedData === undefined || script.cachedDataRejected === true)) {
    process.once("exit", (exitCode) => {
      // After a failure, exit quickly: later exit listeners may still have work to do.
      if (exitCode === 0 && process.uptime() * 1_000 < LONGEST_LIFE_MS) keep(place, bytes, script);
    });
  }
  const module = new Module(file);
  module.filename = file;
  const require = createRequire(file);
  require.cache[file] = module;
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
  module.loaded = true;
}

/**
 * Returns the cached code. Undefined if the cache is missing, incomplete, from another source, or from an untrusted
 * user.
 */
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
 * Whether only a trusted user can have written the cache: the owner of the command, root, or the current user.
 *
 * @param commandUid  the user id of the command's owner
 */
export function isTrusted(kept: Pick<Stats, "uid" | "mode" | "isFile">, commandUid: number): boolean {
  const isOfOurs = [commandUid, 0, process.geteuid?.()].includes(kept.uid);
  return kept.isFile() && isOfOurs && (kept.mode & WRITABLE_BY_OTHERS) === 0;
}

/**
 * Whether others may create files in the folder. The sticky bit does not help: others cannot replace a file there, but
 * they can create it first.
 */
function isOpenToOthers(folder: string): boolean {
  return (statSync(folder).mode & WRITABLE_BY_OTHERS) !== 0;
}

/** Writes the cache and renames it in one step, because other processes may be reading or writing it. Never throws. */
function keep(place: string, source: Buffer, script: Script): void {
  const draft = `${place}.${process.pid}`;
  try {
    accessSync(dirname(place), constants.W_OK);
    if (isOpenToOthers(dirname(place))) return;
    const compiled = script.createCachedData();
    const descriptor = openSync(draft, "wx", READABLE);
    try {
      // Set the mode regardless of the umask: others must be able to read the file and must not be able to write it.
      fchmodSync(descriptor, READABLE);
      writeFileSync(descriptor, Buffer.concat([digestOf(source, compiled), compiled]));
      renameSync(draft, place);
    } finally {
      closeSync(descriptor);
      rmSync(draft, { force: true });
    }
  } catch {
    // Without a cache, the next start compiles again.
  }
}

function digestOf(source: Buffer, compiled: Buffer): Buffer {
  const { createHash } = process.getBuiltinModule("node:crypto");
  return createHash("sha256").update(source).update(compiled).digest();
}

/** Tests the code cache of the published command: who may read it, and whose cache is used. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isTrusted } from "../src/start/code-cache.js";

// Starting a process can take very long on a busy machine, so use long timeouts. No test here measures time.
vi.setConfig({ testTimeout: 120_000 });

const LOADER = new URL("../dist/start/code-cache.js", import.meta.url).href;
const OURS = 'console.log("ours");';
/** Has the same length as OURS, because V8 compares only the length of the source. */
const THEIRS = 'console.log("evil");';
const STRANGER = 12_345;
const OWNER = 1_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-code-cache-"));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Starts a command with this text in a folder. @returns what the command printed */
async function start(umask = "022", home = folder, text = OURS): Promise<string> {
  const file = join(home, "command.cjs");
  writeFileSync(file, text);
  const program = `import("${LOADER}").then(({ loadWithCache }) => loadWithCache(process.argv[1]))`;
  const words = ["-c", 'umask "$1"; exec "$2" -e "$3" "$4"', "sh", umask, process.execPath, program, file];
  return (await promisify(execFile)("sh", words, { timeout: 100_000 })).stdout.trim();
}

const cachesIn = (home: string): string[] => readdirSync(home).filter((name) => name.includes(".cache"));
const modeOf = (path: string): number => statSync(path).mode & 0o777;

/** Stores the compiled code of THEIRS in place of the cache of OURS, with a matching digest. @returns its path */
async function forge(): Promise<string> {
  const elsewhere = join(folder, "elsewhere");
  mkdirSync(elsewhere, { mode: 0o755 });
  expect(await start("022", elsewhere, THEIRS)).toBe("evil");
  const [name = ""] = cachesIn(elsewhere);
  const compiled = readFileSync(join(elsewhere, name)).subarray(32);
  const place = join(folder, name);
  writeFileSync(place, Buffer.concat([createHash("sha256").update(OURS).update(compiled).digest(), compiled]));
  chmodSync(place, 0o644);
  return place;
}

describe("a written cache", () => {
  it.each(["000", "022", "077"])("is readable by everyone and writable by its owner, with umask %s", async (umask) => {
    expect(await start(umask)).toBe("ours");
    const [name = "", ...others] = cachesIn(folder);
    expect(others).toEqual([]);
    expect(modeOf(join(folder, name))).toBe(0o644);
  });

  it.each([0o1777, 0o777, 0o775])("does not exist in a folder that others may write to (%o)", async (mode) => {
    chmodSync(folder, mode);
    expect(await start()).toBe("ours");
    expect(cachesIn(folder)).toEqual([]);
  });
});

describe("a forged cache", () => {
  it("is used if the command's owner wrote it, so that the other tests prove something", async () => {
    await forge();
    expect(await start()).toBe("evil");
  });

  it.each([0o666, 0o664])("is not used if others may write it (%o), and is replaced", async (mode) => {
    const place = await forge();
    chmodSync(place, mode);
    expect(await start()).toBe("ours");
    expect(modeOf(place)).toBe(0o644);
    expect(await start()).toBe("ours");
  });

  it("is not used in a folder that others may write to", async () => {
    await forge();
    chmodSync(folder, 0o1777);
    expect(await start()).toBe("ours");
  });

  it("is not used through a symbolic link", async () => {
    const place = await forge();
    renameSync(place, join(folder, "forged"));
    symlinkSync("forged", place);
    expect(await start()).toBe("ours");
  });

  it("does not block the command if it is a pipe", async () => {
    const place = await forge();
    rmSync(place);
    await promisify(execFile)("mkfifo", [place]);
    expect(await start()).toBe("ours");
    expect(statSync(place).isFile()).toBe(true);
  });

  it("is not used if it belongs to another user", async () => {
    const kept = (uid: number): Parameters<typeof isTrusted>[0] => ({ uid, mode: 0o100644, isFile: () => true });
    expect(isTrusted(kept(STRANGER), OWNER)).toBe(false);
    for (const uid of [OWNER, 0, process.geteuid?.() ?? 0]) expect(isTrusted(kept(uid), OWNER)).toBe(true);
    // Only root can change the owner of a file.
    if (process.geteuid?.() !== 0) return;
    const place = await forge();
    chownSync(place, STRANGER, STRANGER);
    expect(await start()).toBe("ours");
    expect(statSync(place).uid).toBe(0);
  });
});

/** The types of `holdfast/web-locks`, compiled from the build as a user compiles them. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test, vi } from "vitest";

// The compiler is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const home = fileURLToPath(new URL("../..", import.meta.url));
const compiler = fileURLToPath(new URL("../../../../node_modules/@typescript/native/bin/tsc", import.meta.url));
const folder = mkdtempSync(join(home, ".cache-types-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Compiles a program. Returns the compiler's errors. Rejects if the compiler does not run. */
async function complaintsAbout(code: string, lib: string): Promise<string> {
  const file = join(folder, `${lib.replaceAll(",", "-")}.mts`);
  writeFileSync(file, code);
  const options = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--module",
    "nodenext",
    "--target",
    "es2023",
  ];
  // Options for a file are an error where a tsconfig.json is found, unless it is ignored.
  const args = [compiler, ...options, "--ignoreConfig", "--types", "node", "--skipLibCheck", "--lib", lib, file];
  return promisify(execFile)(execPath, args, { cwd: home }).then(
    () => "",
    (error: { readonly stdout: string }) => {
      // If the compiler fails without an error message, it did not compile.
      if (!error.stdout.includes("error TS")) throw error;
      return error.stdout;
    },
  );
}

const OURS = `
import { createHoldfast, type Lease } from "holdfast";
import { lockManager, type WebLock, type WebLockCallback, type WebLockInfo, type WebLockManager, type WebLockOptions, type WebLockSnapshot } from "holdfast/web-locks";
declare const holdfast: ReturnType<typeof createHoldfast>;
const locks: WebLockManager = lockManager(holdfast);
const text: string = await locks.request("a", { mode: "shared", signal: AbortSignal.timeout(1) }, async (lock, lease) => {
  const token: number | undefined = (lease as Lease | null)?.token;
  return \`\${lock?.name} \${token}\`;
});
`;

test("a lock manager and its types are compatible with those of the DOM library", async () => {
  const code = `${OURS}
    const dom: LockManager = locks;
    const size: number = await dom.request("a", (lock: Lock | null) => lock?.name.length ?? 0);
    const mine: WebLockManager = navigator.locks as LockManager as WebLockManager;
    const options = [(one: WebLockOptions): LockOptions => one as LockOptions, (one: LockOptions): WebLockOptions => one];
    const lock = [(one: WebLock): Lock => one, (one: Lock): WebLock => one];
    const callback = [<T,>(one: LockGrantedCallback<T>): WebLockCallback<T> => one];
    const infos = [(one: WebLockInfo): LockInfo => one, (one: Required<LockInfo>): WebLockInfo => one];
    const all = [(one: WebLockSnapshot): LockManagerSnapshot => one];
  `;
  expect(await complaintsAbout(code, "es2023,esnext.disposable,dom")).toBe("");
});

test("a program without the DOM library compiles", async () => {
  expect(await complaintsAbout(OURS, "es2023,esnext.disposable")).toBe("");
});

test.each(["es2023,esnext.disposable,dom", "es2023,esnext.disposable"])(
  "with the libraries %s, the compiler reports a mistake",
  async (lib) => {
    const complaints = await complaintsAbout(`${OURS} await locks.request("a", { mode: "both" }, () => text);`, lib);
    expect(complaints.match(/error TS\d+: .+/g)).toEqual([expect.stringContaining('"both"')]);
  },
);

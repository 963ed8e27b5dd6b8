/** The builds of Holdfast for liveness cells: the present one, and those in `verify/baseline`. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

/** The public API of a build; older builds have less. */
export type HoldfastModule = Pick<typeof import("holdfast"), "createHoldfast">;

/** Stored builds, by name. */
export const BUILDS: readonly string[] = ["protocol-0"];

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const SEPARATOR = "@";

/** The build of a subject such as `holdfast@protocol-0`; undefined for the present one, and for peers. */
export function buildOf(subject: string): string | undefined {
  const [name, build] = subject.split(SEPARATOR);
  return name === "holdfast" ? build : undefined;
}

/** The subject for a stored build. @throws RangeError  unknown build */
export function subjectOfBuild(build: string): string {
  if (build === "present") return "holdfast";
  if (!BUILDS.includes(build)) throw new RangeError(`no build ${build}; there are present, ${BUILDS.join(", ")}`);
  return `holdfast${SEPARATOR}${build}`;
}

/** Whether a subject is Holdfast, in any build. */
export function isHoldfast(subject: string): boolean {
  return subject === "holdfast" || buildOf(subject) !== undefined;
}

/** Loads a build. It is unpacked into `.cache` once, where it resolves this repository's client libraries. */
export async function loadBuild(subject: string): Promise<HoldfastModule> {
  const build = buildOf(subject);
  if (build === undefined) return import("holdfast");
  subjectOfBuild(build);
  const folder = await unpacked(join(ROOT, "verify/baseline", `holdfast-${build}.tgz`), build);
  return (await import(pathToFileURL(join(folder, "package/dist/index.js")).href)) as HoldfastModule;
}

/** Safe for several processes: each unpacks to its own folder, and the first to finish renames it. */
async function unpacked(archive: string, build: string): Promise<string> {
  const digest = createHash("sha256")
    .update(await readFile(archive))
    .digest("hex");
  const cache = join(ROOT, ".cache/baseline");
  const folder = join(cache, `${build}-${digest.slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const fresh = await mkdtemp(join(cache, `${build}-`));
  await promisify(execFile)("tar", ["-xzf", archive, "-C", fresh]);
  try {
    await rename(fresh, folder);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** The two builds of the library that share a server. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

/** The build that a worker runs: the one in `verify/baseline`, or the one in this tree. */
export type Build = "old" | "new";

/** The URL of each build's entry point. */
export interface Builds {
  readonly entries: Readonly<Record<Build, string>>;
  remove(): Promise<void>;
}

const BASELINE: string = fileURLToPath(new URL("../../baseline/holdfast-protocol-0.tgz", import.meta.url));

const PRESENT: string = new URL("../../../packages/holdfast/dist/index.js", import.meta.url).href;

/** Unpacks the old build. The new build is the one that this program was compiled with. */
export async function unpackBuilds(): Promise<Builds> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-upgrade-"));
  await promisify(execFile)("tar", ["-xzf", BASELINE, "-C", directory]);
  const old = join(directory, "package/dist/index.js");
  if (!existsSync(old)) throw new Error(`${BASELINE} has no package/dist/index.js`);
  return {
    entries: { old: pathToFileURL(old).href, new: PRESENT },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

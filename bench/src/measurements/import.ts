/** What importing the library costs a program: the import time in a fresh process, and the size in a bundle. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import type { Adapter } from "../adapters/adapter.js";
import { target } from "../results.js";
import type { Prepared } from "./entry.js";
import type { Measurement } from "./measurement.js";

const GZIP_LEVEL = 9;
const BYTES_PER_KB = 1_000;
const OURS = "holdfast";
/** Only mutexes, on ioredis: a program that imports `createMutexes` and `ioredis`. */
const MUTEX = "holdfast/mutex";
const PACK = new URL("../../../scripts/pack.mjs", import.meta.url).href;
const LIBRARY = fileURLToPath(new URL("../../../packages/holdfast", import.meta.url));
const PROGRAM = "const t = performance.now(); await import(process.argv[1]); console.log(performance.now() - t);";
/** Not counted: clients, which the user installs, and optional stores. */
const NOT_OWN = /^(node:|ioredis$|redis$|@redis\/|@valkey\/|knex$|kysely$|@aws-sdk\/)/;

const run = promisify(execFile);

export const imports: Measurement = {
  name: "import",
  title: () => "import in a fresh process, and size in a bundle without the client",
  seconds: 0,
  figures: [
    { name: "import", unit: "ms", digits: 1, better: "less" },
    { name: "size", unit: "kB min+gzip", digits: 1, better: "less", isDrawn: true },
  ],

  entries: (adapters) =>
    adapters
      .filter((adapter, i) => adapter.package !== undefined && isFirst(adapter, i, adapters))
      .flatMap((adapter) => {
        const { name, role } = adapter;
        const own = { name, role, prepare: () => prepare(adapter.package ?? "") };
        return adapter.package === OURS ? [own, { name: MUTEX, role, prepare: () => prepare(MUTEX) }] : [own];
      }),

  targets: (results) => [
    target("import of holdfast", results.median(OURS, "import"), { atMost: 12 }, "ms", 1),
    target("size of holdfast without client", results.median(OURS, "size"), { atMost: 50 }, "kB min+gzip", 1),
    target("size of holdfast/mutex with ioredis", results.median(MUTEX, "size"), { atMost: 38 }, "kB min+gzip", 1),
  ],
};

function isFirst(adapter: Adapter, i: number, adapters: readonly Adapter[]): boolean {
  return adapters.findIndex((other) => other.package === adapter.package) === i;
}

async function prepare(name: string): Promise<Prepared> {
  const packed = name === OURS || name === MUTEX ? await asPublished() : undefined;
  const file = name === MUTEX ? "dist/mutexes.js" : "dist/index.js";
  const url = packed === undefined ? import.meta.resolve(name) : pathToFileURL(join(packed, file)).href;
  // Some peers have only a default export, which `export *` leaves out.
  const everything = packed === undefined ? "* as all" : "*";
  const size = await sizeOf(url, name === MUTEX ? "{ createMutexes, ioredis }" : everything);
  const once = async (): Promise<number> => {
    const { stdout } = await run(process.execPath, ["--no-warnings", "--input-type=module", "-e", PROGRAM, url]);
    return Number(stdout);
  };
  await once(); // loads the files into the page cache
  return {
    run: async () => ({ values: [await once(), size / BYTES_PER_KB] }),
    async close() {
      if (packed !== undefined) await rm(packed, { recursive: true });
    },
  };
}

/** Packs the library as users install it, because it is bundled only when packed. */
async function asPublished(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-packed-"));
  const { pack } = (await import(PACK)) as { pack(home: string, target: string): Promise<void> };
  await pack(LIBRARY, folder);
  return folder;
}

/** The size in bytes of a program that exports `names` from the entry point, minified and compressed. */
async function sizeOf(url: string, names: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-size-"));
  const input = join(folder, "program.mjs");
  await writeFile(input, `export ${names} from ${JSON.stringify(new URL(url).pathname)};\n`);
  const bundle = await rolldown({ input, platform: "node", external: NOT_OWN, logLevel: "silent" });
  try {
    const { output } = await bundle.generate({ format: "esm", minify: true });
    const code = output.map((chunk) => (chunk.type === "chunk" ? chunk.code : "")).join("");
    return gzipSync(code, { level: GZIP_LEVEL }).byteLength;
  } finally {
    await bundle.close();
    await rm(folder, { recursive: true });
  }
}

/** Where a run took place: figures mean nothing without it. */
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Server } from "./server.js";

/** The machine, and the versions of what does not belong to a contestant. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  /** Processes that wanted a core over the last minute before the run: much above 0 is a busy machine. */
  readonly load: number;
  readonly node: string;
  /** Version of the server. */
  readonly redis: string;
  /** Set if the server is not Redis. */
  readonly server?: string;
  readonly ioredis: string;
  readonly nodeRedis: string;
  readonly glide: string;
}

/** Looks at this machine. */
export function machine({ version, isValkey }: Pick<Server, "version" | "isValkey">): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    load: loadavg()[0] ?? 0,
    node: process.versions.node,
    redis: version,
    ...(isValkey ? { server: "Valkey" } : {}),
    ioredis: versionOf("ioredis"),
    nodeRedis: versionOf("redis"),
    glide: versionOf("@valkey/valkey-glide"),
  };
}

/** Version of an installed package; not every package lets its package.json be imported, so that it is looked for. */
export function versionOf(name: string): string {
  for (
    let folder = dirname(fileURLToPath(import.meta.resolve(name)));
    folder !== dirname(folder);
    folder = dirname(folder)
  ) {
    const version = versionIn(folder, name);
    if (version !== undefined) return version;
  }
  return "unknown";
}

function versionIn(folder: string, name: string): string | undefined {
  try {
    const facts = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: string; version?: string };
    // Built folders may have a package.json without a name, which only says how their files are loaded.
    return facts.name === name ? facts.version?.replace(/^v/, "") : undefined;
  } catch {
    return undefined;
  }
}

/** Processor time that everybody on this machine has used so far, in seconds. */
export function machineSeconds(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1_000;
}

/** The machine that a run took place on: figures mean nothing without it. */
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Server } from "./server.js";

/** The machine, and the versions of Node, the server and the client libraries. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  /** Load average over the minute before the run. Well above 0 means that the machine was busy. */
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

/** Describes this machine. */
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

/** Version of an installed package. Its package.json is read from disk, because not every package exports it. */
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
    // Build folders may have a package.json without a name that only sets the module type.
    return facts.name === name ? facts.version?.replace(/^v/, "") : undefined;
  } catch {
    return undefined;
  }
}

/** Processor time that all processes of this machine have used so far, in seconds. */
export function machineSeconds(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1_000;
}

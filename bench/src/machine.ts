/** Where a run took place: figures mean nothing without it. */
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";

/** The machine, and the versions of what does not belong to a contestant. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  /** Processes that wanted a core over the last minute, ours included: much more than we start is a busy machine. */
  readonly load: number;
  readonly node: string;
  readonly redis: string;
  readonly ioredis: string;
}

/** Looks at this machine. */
export function machine(redisVersion: string): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    load: loadavg()[0] ?? 0,
    node: process.versions.node,
    redis: redisVersion,
    ioredis: versionOf("ioredis"),
  };
}

/** Version of an installed package that lets its package.json be read. */
export function versionOf(name: string): string {
  const facts: unknown = JSON.parse(readFileSync(fileURLToPath(import.meta.resolve(`${name}/package.json`)), "utf8"));
  const version = typeof facts === "object" && facts !== null && "version" in facts ? facts.version : undefined;
  return typeof version === "string" ? version : "unknown";
}

/** What the subjects of other libraries have in common: the client they are given, and words for what they answer. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import type { Refusal } from "../../history/records.js";
import type { Refused, SubjectSettings } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";

/** By how much of a lease the clocks of client and server may disagree; assumption A1. */
const DRIFT = 0.01;

const require = createRequire(import.meta.url);

/** Returns the version of an installed package from its package.json. */
export function versionOf(packageName: string): string {
  // Not every package exports its package.json, so that it is looked for above the file that is imported.
  for (let folder = dirname(require.resolve(packageName)); ; folder = dirname(folder)) {
    const version = versionIn(folder, packageName);
    if (version !== undefined) return version;
    if (folder === dirname(folder)) throw new Error(`${packageName} has no package.json`);
  }
}

function versionIn(folder: string, packageName: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(join(folder, "package.json"), "utf8");
  } catch {
    return undefined;
  }
  const { name, version } = JSON.parse(text) as { readonly name?: string; readonly version?: string };
  // Built folders may have a package.json without a name, which only says how their files are loaded.
  return name === packageName ? version?.replace(/^v/, "") : undefined;
}

/** An ioredis client with nothing but the port and the time to answer set; every peer that takes ioredis gets it so. */
export async function connectIoredis({ port, commandTimeoutMs }: SubjectSettings): Promise<Redis> {
  const client = new Redis({ host: "127.0.0.1", port, commandTimeout: commandTimeoutMs });
  // A connection that fails is made again, the first one too; what failed on it rejects where it was asked for.
  client.on("error", () => {});
  await new Promise<void>((resolve) => client.once("ready", resolve));
  return client;
}

/** An answer that surely had no effect. */
export function no(refusal: Refusal, message: string): Refused {
  return { outcome: "no", refusal, message };
}

/** An error after which the outcome is unknown. */
export function info(error: unknown): Refused {
  return { outcome: "info", message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
}

/** For calls that a peer does not support: a misuse by the caller, not an outcome of the peer. */
export function lacks(name: string, what: string): never {
  throw new RangeError(`${name} has no ${what}`);
}

/** An instant of the wall clock on the recorder's clock, as both stand now. */
export function fromWall(wallMs: number): number {
  return monotonicMs() + (wallMs - Date.now());
}

/**
 * Whether a lease was held for certain, for peers whose calls resolve with nothing whether or not it was.
 *
 * Within the lease a call that resolves has done what it is for. After it the peer says neither that it has, nor that
 * it has not, and its documentation promises no more: that is `info`, and not a success claimed by us in its name.
 */
export class CertainLease {
  #endsMs: number;

  /** @param sentMs  before the request left that began the lease, on the recorder's clock */
  constructor(sentMs: number, leaseMs: number) {
    this.#endsMs = endOf(sentMs, leaseMs);
  }

  /** Another request began a lease of so much, and is answered. */
  renewed(sentMs: number, leaseMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, endOf(sentMs, leaseMs));
  }

  /** What a call that has just resolved with nothing has to be recorded as. */
  resolved(verb: string): undefined | Refused {
    if (monotonicMs() < this.#endsMs) return undefined;
    return { outcome: "info", message: `${verb} resolved after the lease, and does not say whether it was still held` };
  }
}

function endOf(sentMs: number, leaseMs: number): number {
  return sentMs + leaseMs * (1 - DRIFT);
}

/** Shared by the adapters of other libraries: the client, and the outcomes of calls. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import type { Refusal } from "../../history/records.js";
import type { Refused, SubjectSettings } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";

/** The clock drift between client and server, as a fraction of the lease; assumption A1. */
const DRIFT = 0.01;

const require = createRequire(import.meta.url);

/** Returns the version of an installed package from its package.json. */
export function versionOf(packageName: string): string {
  // Not every package exports its package.json, so this searches the folders above the imported file.
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
  // Built folders may have a package.json without a name, which only defines how their files are loaded.
  return name === packageName ? version?.replace(/^v/, "") : undefined;
}

/** An ioredis client with only the port and the command timeout set; all peers that use ioredis get such a client. */
export async function connectIoredis({ port, commandTimeoutMs }: SubjectSettings): Promise<Redis> {
  const client = new Redis({ host: "127.0.0.1", port, commandTimeout: commandTimeoutMs });
  // ioredis reconnects by itself, after a failed first connection too; failed requests reject where they were made.
  client.on("error", () => {});
  await new Promise<void>((resolve) => client.once("ready", resolve));
  return client;
}

/** A refusal: the call certainly had no effect. */
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

/** Converts an instant of the wall clock to the recorder's clock, by the present difference between the two. */
export function fromWall(wallMs: number): number {
  return monotonicMs() + (wallMs - Date.now());
}

/**
 * Whether a lease was certainly held, for peers whose calls resolve without a value in either case.
 *
 * A call that resolves within the lease has succeeded. If it resolves later, the peer does not say whether it has, and
 * its documentation promises nothing. So the outcome is `info`: a success would be our claim, not the peer's.
 */
export class CertainLease {
  #endsMs: number;

  /** @param sentMs  just before the request for the lease was sent, on the recorder's clock */
  constructor(sentMs: number, leaseMs: number) {
    this.#endsMs = endOf(sentMs, leaseMs);
  }

  /** Call it when another request has succeeded that started a lease of this length. */
  renewed(sentMs: number, leaseMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, endOf(sentMs, leaseMs));
  }

  /** The outcome of a call that has just resolved without a value. */
  resolved(verb: string): undefined | Refused {
    if (monotonicMs() < this.#endsMs) return undefined;
    return { outcome: "info", message: `${verb} resolved after the lease, and does not say whether it was still held` };
  }
}

function endOf(sentMs: number, leaseMs: number): number {
  return sentMs + leaseMs * (1 - DRIFT);
}

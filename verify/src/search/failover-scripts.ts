/**
 * Records the scripts that the library loads on a server that may have taken over from another.
 *
 * The embedded store has no failover, so this uses a client object that replies like a server and stores the scripts.
 */
import { createHoldfast } from "holdfast";

/** Maps script names to texts; `/quiet` after a name means the form without a hand-off. */
export type FailoverTexts = ReadonlyMap<string, string>;

const WANTED = [
  "server/lineage",
  "mutex/acquire",
  "mutex/extend",
  "mutex/reclaim",
  "mutex/release",
  "mutex/release/quiet",
  "mutex/leave",
  "mutex/leave/quiet",
];

/** Replies with fixed values. Every script must be loaded before it runs. */
class TaughtServer {
  readonly texts = new Map<string, string>();
  readonly #known = new Map<string, string>();
  isQuiet = false;
  /** Whether acquires get no reply, so that they have to be undone. */
  isSilent = false;
  /** The part about its run, at the end of a reply about itself. */
  readonly #about: readonly string[];

  constructor(sharedRun: string | undefined) {
    this.#about = sharedRun === undefined ? [] : [sharedRun, "shared"];
  }

  /** Forgets all scripts, as after a promotion. */
  forget(): void {
    this.#known.clear();
  }

  async customCommand([command, ...words]: string[]): Promise<unknown> {
    const [first = "", second = ""] = words;
    if (command === "SCRIPT") {
      const name = /^-- holdfast (\S+)/.exec(second)?.[1] ?? "";
      const { createHash } = await import("node:crypto");
      this.#known.set(createHash("sha1").update(second).digest("hex"), name);
      const form = this.isQuiet && this.texts.has(name) && this.texts.get(name) !== second ? `${name}/quiet` : name;
      this.texts.set(form, second);
      return "OK";
    }
    const name = this.#known.get(first);
    if (name === undefined) throw new Error("NOSCRIPT no matching script");
    if (name === "server/lineage") return [...(this.isQuiet ? [1, 30_000, 30_000] : [0, 30_000]), ...this.#about];
    if (name === "mutex/acquire") {
      if (this.isSilent) throw new Error("no answer");
      return Date.now() * 1_000;
    }
    if (name === "mutex/extend") return 4;
    return 1;
  }

  // These methods only serve to detect the client library.
  invokeScript(): void {}
  close(): void {}
}

/**
 * Uses the library in every way that sends one of the wanted scripts.
 *
 * @param sharedRun  the run of a server whose replicas get its scripts too, as before Redis 7
 * @throws Error  a script was not sent
 */
export async function failoverScripts(sharedRun?: string): Promise<FailoverTexts> {
  const server = new TaughtServer(sharedRun);
  const holdfast = createHoldfast({ redis: server, allowEviction: true });
  try {
    const lease = await holdfast.mutex("seen").acquire();
    await lease.extend(20_000);
    await lease.release();
    const other = await holdfast.mutex("seen").acquire();
    server.isSilent = true;
    for (const isQuiet of [false, true]) {
      // A script that the server does not know is loaded in the form that the server may then run.
      await holdfast
        .mutex("seen")
        .tryAcquire()
        .catch(() => {});
      server.isQuiet = isQuiet;
      if (isQuiet) server.forget();
      await new Promise(setImmediate);
    }
    await other.release();
  } finally {
    await holdfast.close();
  }
  const missing = WANTED.filter((name) => !server.texts.has(name));
  if (missing.length > 0) throw new Error(`the library did not send ${missing.join(", ")}`);
  return server.texts;
}

/**
 * The scripts that the library sends to a server that may have taken over from another, taken from what it teaches one.
 *
 * The embedded store has no failover, so this is a client that answers as a server would, and writes down the texts.
 */
import { createHoldfast } from "holdfast";

/** Name of a script to its text; `/quiet` after the name is the form without a hand-off. */
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

/** Answers from a list. Every script must be loaded before it runs. */
class TaughtServer {
  readonly texts = new Map<string, string>();
  readonly #known = new Map<string, string>();
  isQuiet = false;
  /** Acquires get no answer, so that they have to be undone. */
  isSilent = false;
  /** What it says about its run at the end of an answer about itself. */
  readonly #about: readonly string[];

  constructor(sharedRun: string | undefined) {
    this.#about = sharedRun === undefined ? [] : [sharedRun, "shared"];
  }

  /** As after a promotion: it knows no script. */
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

  // Only what shows which library it is.
  invokeScript(): void {}
  close(): void {}
}

/**
 * Uses the library in every way that sends one of the wanted scripts.
 *
 * @param sharedRun  the run of a server whose replicas get its scripts too, as before Redis 7
 * @throws Error  one of them was not sent
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
      // What is not known where it was sent is taught in the form that the server may run by then.
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

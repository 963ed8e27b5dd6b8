/** What every reader of facts is given, and how it tells answers from failures. */
import type { Redis } from "ioredis";
import type { Topology } from "../facts.js";

/** Where the doctor's one key and channel lie, and the server's marker. */
export interface Place {
  readonly key: string;
  readonly channel: string;
  readonly marker: string;
}

/** What every reader is given. */
export interface Link {
  readonly redis: Redis;
  /** Another connection to the same server, not connected yet. The reader closes it. */
  another(change?: { readonly isAnonymous: boolean }): Redis;
  readonly prefix: string;
  readonly topology: Topology;
  readonly info: ReadonlyMap<string, string>;
  /** Where the probe key and channel lie. */
  readonly place: Place;
  readonly isPrimary: boolean;
  /** When to come to an end, by `performance.now()`. */
  readonly endAtMs: number;
}

/** Whether the server itself said no. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}

/** An error in its own words, on one line. */
export function wordsOf(error: unknown): string {
  const { message = "", code } = error as { message?: string; code?: string };
  return (message || code || String(error)).split("\n")[0]?.trim() ?? "";
}

/** What is not there when the time is over is not waited for. */
export async function within<Fact>(asked: Promise<Fact>, endAtMs: number): Promise<Fact> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error("no answer in the time given by --for")),
      Math.max(0, endAtMs - performance.now()),
    );
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

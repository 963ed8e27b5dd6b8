/** What every reader of facts receives, and how readers tell server replies from failures. */
import type { Redis } from "ioredis";
import { formatMs } from "../../frame/durations.js";
import type { Topology } from "../facts.js";

/** The location of the doctor's probe key and channel, and of the server's marker. */
export interface Place {
  readonly key: string;
  readonly channel: string;
  readonly marker: string;
}

/** What every reader receives. */
export interface Link {
  readonly redis: Redis;
  /** Creates another client for the same server, without connecting it. The reader must close it. */
  another(change?: { readonly isAnonymous: boolean }): Redis;
  readonly prefix: string;
  readonly topology: Topology;
  readonly info: ReadonlyMap<string, string>;
  /** The location of the probe key and channel. */
  readonly place: Place;
  readonly isPrimary: boolean;
  /** When the reader must stop, by `performance.now()`. */
  readonly endAtMs: number;
  /** The time limit for reading this server, in ms. */
  readonly forMs: number;
}

/** Whether the server itself refused the command. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}

/** The message of an error, on one line. */
export function wordsOf(error: unknown): string {
  const { message = "", code } = error as { message?: string; code?: string };
  return (message || code || String(error)).split("\n")[0]?.trim() ?? "";
}

/** Waits for a fact until `endAtMs`, and then rejects. */
export async function within<Fact>(
  asked: Promise<Fact>,
  { endAtMs, forMs }: Pick<Link, "endAtMs" | "forMs">,
): Promise<Fact> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no reply within ${formatMs(forMs)}`)),
      Math.max(0, endAtMs - performance.now()),
    );
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

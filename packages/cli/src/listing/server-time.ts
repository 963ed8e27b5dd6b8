import type { Connection } from "../frame/verb.js";

/**
 * Now by the clock of the first server that answers, in ms since 1970: grants are dated by it, and this host's clock may
 * differ. This host's where none answers.
 */
export async function serverNowMs({ nodes }: Pick<Connection, "nodes">): Promise<number> {
  try {
    // All at once: the first may be the one that is down.
    const [seconds, microseconds] = await Promise.any(nodes().map((node) => node.time()));
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  } catch {
    return Date.now();
  }
}

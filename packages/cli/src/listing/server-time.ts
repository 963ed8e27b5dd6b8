import type { Connection } from "../frame/verb.js";

/**
 * Returns the time of the first server that answers, in ms since 1970. Grants use the server's clock, and this host's
 * clock may differ. Returns this host's time if no server answers.
 */
export async function serverNowMs({ nodes }: Pick<Connection, "nodes">): Promise<number> {
  try {
    // Ask all servers at the same time, because the first one may be down.
    const [seconds, microseconds] = await Promise.any(nodes().map((node) => node.time()));
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  } catch {
    return Date.now();
  }
}

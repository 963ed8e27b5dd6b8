import type { Connection } from "../frame/verb.js";

/**
 * Now by the clock of the first server that answers, in ms since 1970: grants are dated by it, and this host's clock may
 * differ. This host's where none answers.
 */
export async function serverNowMs({ nodes }: Pick<Connection, "nodes">): Promise<number> {
  for (const node of nodes()) {
    const time = await node.time().catch(() => undefined);
    const [seconds, microseconds] = time ?? [];
    if (seconds !== undefined) return Number(seconds) * 1_000 + Math.floor(Number(microseconds ?? 0) / 1_000);
  }
  return Date.now();
}

/** Reports what is missing from a list, and why. */
import { notify } from "../frame/output.js";
import type { Call, Connection } from "../frame/verb.js";

/** How much of the data was read. */
export interface Extent {
  /** The number of servers that did not reply. */
  readonly unreachable: number;
  /** False if some data was not read. */
  readonly isComplete?: boolean;
  /** How to read less, such as `; narrow it with PATTERN`. */
  readonly narrower?: string;
  /** What the servers were asked for. Default: `locks` */
  readonly what?: "locks" | "history";
}

/** Reports on stderr what is missing; prints nothing if the list is complete. Never rejects. */
export async function reportMissing(
  { common, streams }: Pick<Call, "common" | "streams">,
  { nodes }: Pick<Connection, "nodes">,
  { unreachable, isComplete = true, narrower = "", what }: Extent,
): Promise<void> {
  if (!isComplete) notify(streams, common, `stopped after 100,000 locks, so the list is incomplete${narrower}`);
  if (unreachable === 0) return;
  const silent = await silentAmong(nodes());
  // Other servers may have stopped or resumed since the list was read.
  const text = missingText(unreachable, silent.length === unreachable ? silent : [], what);
  if (text !== undefined) notify(streams, common, text);
}

/** Says how many servers did not reply, and what is missing. @param silent  their addresses, as far as known */
export function missingText(
  unreachable: number,
  silent: readonly string[] = [],
  what: Extent["what"] = "locks",
): string | undefined {
  if (unreachable === 0) return undefined;
  const which = silent.length === 0 ? "" : ` (${silent.join(", ")})`;
  const [servers, their] = unreachable === 1 ? ["1 server", "its"] : [`${unreachable} servers`, "their"];
  const missing = what === "history" ? "history is missing" : "locks are missing from the list";
  return `${servers} did not reply${which}: ${their} ${missing}`;
}

/** Pings each server to find the silent ones, because a list only counts them. Takes at most `--command-timeout`. */
export async function silentAmong(nodes: ReturnType<Connection["nodes"]>): Promise<string[]> {
  const asked = await Promise.allSettled(nodes.map((node) => node.ping()));
  return nodes.flatMap(({ options: { host = "", port } }, i) => {
    if (asked[i]?.status !== "rejected") return [];
    return [host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`];
  });
}

/** Reports what is missing from a list, and why. */
import { notify } from "../frame/output.js";
import type { Call, Connection } from "../frame/verb.js";

/** How much of the data was read. */
export interface Extent {
  /** The number of servers that did not answer. */
  readonly unreachable: number;
  /** False if some data was not read. */
  readonly isComplete?: boolean;
}

/** Reports on stderr what is missing; prints nothing if the list is complete. Never rejects. */
export async function reportMissing(
  { common, streams }: Pick<Call, "common" | "streams">,
  { nodes }: Pick<Connection, "nodes">,
  { unreachable, isComplete = true }: Extent,
): Promise<void> {
  if (!isComplete) notify(streams, common, "there is too much to read, so the list is incomplete");
  if (unreachable === 0) return;
  const silent = await silentAmong(nodes());
  const which = silent.length === 0 ? "" : ` (${silent.join(", ")})`;
  const silence =
    unreachable === 1
      ? `1 server did not answer${which}: what is on it`
      : `${unreachable} servers did not answer${which}: what is on them`;
  notify(streams, common, `${silence} is missing from the list`);
}

/** Pings each server, because a list contains only the number of silent servers. Takes at most `--command-timeout`. */
async function silentAmong(nodes: ReturnType<Connection["nodes"]>): Promise<string[]> {
  const asked = await Promise.allSettled(nodes.map((node) => node.ping()));
  return nodes.flatMap(({ options: { host, port } }, i) =>
    asked[i]?.status === "rejected" ? [`${host}:${port}`] : [],
  );
}

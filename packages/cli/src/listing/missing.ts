/** What a list lacks, and why, for whoever reads it. */
import { notify } from "../frame/output.js";
import type { Call, Connection } from "../frame/verb.js";

/** How much of it was looked at. */
export interface Extent {
  /** How many servers did not answer. */
  readonly unreachable: number;
  /** False if there is more than was looked at. */
  readonly isComplete?: boolean;
}

/** Says on stderr what is missing, and nothing where nothing is. Never rejects. */
export async function reportMissing(
  { common, streams }: Pick<Call, "common" | "streams">,
  { nodes }: Pick<Connection, "nodes">,
  { unreachable, isComplete = true }: Extent,
): Promise<void> {
  if (!isComplete)
    notify(streams, common, "there are more than were looked at: what is not shown may be there all the same");
  if (unreachable === 0) return;
  const silent = await silentAmong(nodes());
  const which = silent.length === 0 ? "" : ` (${silent.join(", ")})`;
  const silence =
    unreachable === 1
      ? `1 server did not answer${which}: what is on it`
      : `${unreachable} servers did not answer${which}: what is on them`;
  notify(streams, common, `${silence} is missing here`);
}

/** A list only counts them, so each is asked once more, for as long as a command may take. */
async function silentAmong(nodes: ReturnType<Connection["nodes"]>): Promise<string[]> {
  const asked = await Promise.allSettled(nodes.map((node) => node.ping()));
  return nodes.flatMap(({ options: { host, port } }, i) =>
    asked[i]?.status === "rejected" ? [`${host}:${port}`] : [],
  );
}

/**
 * Asks the server of a cluster slot about the slot. This file is separate so that only programs with a cluster load it.
 */
import { call } from "../core/call.js";
import type { Grace, ShardStanding } from "../core/store.js";
import { serverShard } from "../generated/server.js";

/** See `Grace.inspectSlot`. The outcome is `hidden` if the server does not show its slots. */
export async function inspectSlot(
  ...[run, marker, vouched, withOthers, timeoutMs]: Parameters<NonNullable<Grace["inspectSlot"]>>
): Promise<ShardStanding> {
  const args = { vouched, list: withOthers ? 1 : 0 };
  const seen = await call({ store: { run }, name: marker }, serverShard, { marker }, args, timeoutMs);
  if (seen.outcome === "hidden") return seen;
  const [name = "", id = "", ...words] = seen.words;
  const others = words.flatMap((word, i) => (i % 2 === 0 ? [{ id: word, home: Number(words[i + 1]) }] : []));
  return { outcome: seen.outcome, home: seen.home, run: name, id, others };
}

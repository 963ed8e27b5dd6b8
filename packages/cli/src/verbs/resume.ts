/** `holdfast resume`: ends a pause. */

import { plain } from "@holdfast/console/text";
import type { Holdfast } from "holdfast";
import { formatMs } from "../frame/durations.js";
import { EXIT } from "../frame/exit-codes.js";
import { jsonLine, notify } from "../frame/output.js";
import { nameOf, textOf } from "../frame/values.js";
import type { Verb } from "../frame/verb.js";
import { findLocks } from "../listing/found.js";
import { checkMessage } from "../listing/message.js";
import { onlyNative } from "../listing/native.js";
import { recordDeed } from "../listing/past.js";
import { whoAmI } from "../listing/people.js";
import { quoted } from "../listing/sentences.js";

const HELP = `
Ends a pause, no matter who began it. Waiters are served in order, the first
one immediately.

  -m, --message TEXT      for the history

Exit code 0; 1 if it is not paused.`;

/** The verb `resume`. */
export const resume: Verb = {
  name: "resume",
  usage: "holdfast resume NAME [-m WHY]",
  help: HELP,
  options: { message: { type: "string", short: "m" } },
  async run(call) {
    const { common, streams, values } = call;
    onlyNative("resume", common);
    const name = nameOf("resume", call.positionals);
    const message = textOf(values, "message");
    if (message !== undefined) checkMessage(message);
    const connection = await call.connect();
    try {
      const by = whoAmI();
      const ended = await end(connection.holdfast, call.common, name, by);
      if (ended !== undefined) {
        const { kind, pause, pausedForMs } = ended;
        const facts = {
          what: "resumed",
          kind,
          name,
          by,
          owner: pause.owner,
          label: pause.label,
          heldMs: pausedForMs,
          reason: message,
        } as const;
        const trouble = await recordDeed(connection.holdfast, facts);
        if (trouble !== undefined) notify(streams, common, trouble);
      }
      if (common.isJson) streams.stdout.write(jsonLine(documentOf(name, ended)));
      else streams.stdout.write(`${sentenceOf(name, ended)}\n`);
      return ended === undefined ? EXIT.no : EXIT.done;
    } finally {
      await connection.close();
    }
  },
};

type Ended = Extract<Awaited<ReturnType<Holdfast["resume"]>>, { outcome: "resumed" }> & { readonly kind: string };

/** Ends the pause, whatever kind is paused; undefined if the name is not paused. */
async function end(
  holdfast: Holdfast,
  common: Parameters<typeof findLocks>[1],
  name: string,
  by: string,
): Promise<Ended | undefined> {
  for (const { entry } of await findLocks(holdfast, common, name)) {
    if (entry.pause === undefined) continue;
    // A paused lock is always of a kind that can be paused.
    const kind = entry.kind as NonNullable<Parameters<Holdfast["resume"]>[1]["kind"]>;
    const outcome = await holdfast.resume(name, { by, kind });
    if (outcome.outcome === "resumed") return { ...outcome, kind };
  }
  return undefined;
}

function documentOf(name: string, ended: Ended | undefined): object {
  if (ended === undefined) return { resumed: false, name };
  const { pause, pausedForMs, waiterCount, kind } = ended;
  const { by, label, sinceAtMs } = pause;
  return { resumed: true, name, kind, by, label, sinceAtMs, pausedForMs, waiters: waiterCount };
}

function sentenceOf(name: string, ended: Ended | undefined): string {
  if (ended === undefined) return `${plain(name)} is not paused`;
  const { pause, pausedForMs, waiterCount, kind } = ended;
  const who = `by ${plain(pause.by)}${quoted(pause.label)}`;
  const wakes = waiterCount === 0 ? "no waiters" : waiterCount === 1 ? "1 waiter wakes" : `${waiterCount} waiters wake`;
  return `resumed ${plain(name)} (${kind}) after ${formatMs(pausedForMs)}, paused ${who}; ${wakes}`;
}

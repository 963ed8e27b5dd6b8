/** `holdfast pause`: stops grants of a lock, for maintenance of the resource that it protects. */

import { plain, redact, shellWord, unreadableSentence } from "@holdfast/console/text";
import type { Holdfast } from "holdfast";
import { CliError, EXIT } from "../frame/exit-codes.js";
import { jsonLine, notify } from "../frame/output.js";
import { nameOf, textOf, textsOf } from "../frame/values.js";
import type { Call, Verb } from "../frame/verb.js";
import { findLocks, otherKindError, unreadableCode } from "../listing/found.js";
import { holderJson } from "../listing/json.js";
import { messageOf } from "../listing/message.js";
import { notOnRedlock, onlyNative } from "../listing/native.js";
import { recordDeed } from "../listing/past.js";
import { whoAmI } from "../listing/people.js";
import { holderSentence, pauseSentence } from "../listing/sentences.js";
import { serverNowMs } from "../listing/server-time.js";
import { endOf } from "../text/instants.js";

const HELP = `
Stops grants of a lock until you resume it. The current holder continues and
can renew. New requests are refused immediately with your message (run exits
with 75), unless they wait through pauses. Current waiters keep their place.

  -m, --message WHY       required: shown in refusals, lists and the history
      --for D             ends by itself after D
      --until T           ends by itself at T: 18:30, 2026-11-23T18:30 (local
                          time; with Z: UTC)

The name is paused as the kind that it is in use as, or as a mutex if it is
not in use. A Redlock cannot be paused, because its servers are independent.
Hold it instead: holdfast run NAME --redlock --hold

Exit code 0; 1 if it is already paused (that pause stays); 65 if its kind
cannot be paused.`;

/** The kinds that can be paused, under the names that `Holdfast.pause` uses. */
type PauseKind = NonNullable<Parameters<Holdfast["pause"]>[1]["kind"]>;
const PAUSABLE: readonly PauseKind[] = ["mutex", "semaphore", "read-write-lock", "election"];

/** The verb `pause`. */
export const pause: Verb = {
  name: "pause",
  usage: "holdfast pause NAME -m WHY [--for D | --until T]",
  help: HELP,
  options: {
    message: { type: "string", short: "m" },
    for: { type: "string" },
    until: { type: "string" },
  },
  async run(call) {
    const { values, common, streams } = call;
    onlyNative("pause", common);
    const name = nameOf("pause", call.positionals);
    notOnRedlock(
      "pause",
      common,
      `a pause is stored on the one server that grants, and with independent servers there is no such server. Hold the lock instead: ${holdInstead(call, name)} waits for the current holder, and keeps all others out until it is interrupted`,
    );
    const label = messageOf(call, "pause");
    const end = { for: textOf(values, "for"), until: textOf(values, "until") };
    endOf(end, Date.now()); // report a wrong time before any request is sent
    const connection = await call.connect();
    try {
      const { holdfast } = connection;
      const kind = await pausableKind(call, holdfast, name);
      const atMs = await serverNowMs(connection);
      const untilAtMs = endOf(end, atMs);
      const until = untilAtMs === undefined ? {} : { untilAtMs };
      const begun = await holdfast.pause(name, { kind, label, by: whoAmI(), ...until });
      const { outcome, pause: standing, holders, waiterCount } = begun;
      const isNew = outcome === "paused";
      if (isNew) {
        const { by, owner } = standing;
        const paused = { what: "paused", kind, name, by, owner, label, reason: label, ...until } as const;
        const trouble = await recordDeed(holdfast, paused);
        if (trouble !== undefined) notify(streams, common, trouble);
      }
      if (common.isJson) {
        const { by, sinceAtMs } = standing;
        streams.stdout.write(
          jsonLine({
            paused: isNew,
            name,
            kind,
            by,
            label: standing.label,
            sinceAtMs,
            untilAtMs: standing.untilAtMs ?? null,
            holders: holders.map(holderJson),
            waiters: waiterCount,
          }),
        );
      } else {
        const who = pauseSentence(standing, Math.max(atMs, standing.sinceAtMs));
        const lines = [`${plain(name)} (${kind}) is ${isNew ? "paused" : "already paused"} by ${who}`];
        for (const holder of holders) lines.push(`  still held by ${holderSentence(holder, atMs)}`);
        if (waiterCount === 1) lines.push("  1 waiter keeps its place");
        else if (waiterCount > 1) lines.push(`  ${waiterCount} waiters keep their places`);
        streams.stdout.write(`${lines.join("\n")}\n`);
      }
      return isNew ? EXIT.done : EXIT.no;
    } finally {
      await connection.close();
    }
  },
};

/**
 * Returns the command that acts like a pause on independent servers for as long as it runs. It contains the URLs of
 * this call without their passwords.
 */
function holdInstead({ values }: Call, name: string): string {
  const servers = textsOf(values, "redis").map((url) => ` -r ${shellWord(redact(url))}`);
  return `holdfast run ${shellWord(plain(name))}${servers.join("")} --redlock --hold -m WHY`;
}

async function pausableKind({ common }: Call, holdfast: Holdfast, name: string): Promise<PauseKind> {
  const [found] = await findLocks(holdfast, common, name);
  if (found?.entry.unreadable !== undefined) {
    const { entry } = found;
    throw new CliError(unreadableCode(entry), `${plain(name)} ${unreadableSentence(entry)}`);
  }
  const used = found?.entry.kind ?? "mutex";
  const kind = PAUSABLE.find((one) => one === used);
  if (kind !== undefined) return kind;
  throw otherKindError(`${plain(name)} is in use as a ${used}, which cannot be paused; ${PAUSABLE.join(", ")} can`);
}

/** Reports pauses that a server has forgotten. */

import { shellWord } from "@holdfast/console/text";
import { formatInstant } from "../../text/instants.js";
import { type Check, found, ok, skipped, unknown, type Verdict } from "../check.js";
import { isEndOf, isLater, lockOf, startOf } from "../deeds.js";
import type { NodeFacts, PauseFacts, RecordedPause } from "../facts.js";
import { counted, few, fixFor, MORE_TIME } from "../words.js";

/** Maximum number of pauses listed individually. */
const MOST_LISTED = 10;

/** Whether a recorded pause is missing although it was never resumed. */
export const lostPauses: Check = {
  id: "lost-pauses",
  reads:
    "whether every lock that should be paused according to its history is still paused. Reads the last 1,000 events of up to 5,000 histories (`<prefix>:history:{…}`) per node",
  levels: "warning",
  risk: "If a failover or restart lost the pause, clients can acquire the lock during the maintenance. There is no risk if a program that records no history resumed the lock.",
  fix: "if the maintenance continues, run holdfast pause NAME -m WHY. If it is over, run holdfast resume NAME to record the end of the pause",
  families: ["pauses"],
  run(facts, { nodes }) {
    const { role, topology, pauses, hidden } = facts;
    if (role === "slave") return skipped("a replica");
    if (topology === "redlock") return skipped("independent servers cannot pause a lock");
    if (pauses === undefined) {
      const why = hidden.get("pauses");
      return unknown(
        `no history could be read (${why ?? "no reply"})`,
        fixFor(why, "grant SCAN and XREVRANGE to this user"),
      );
    }
    return hasNoHistory(nodes) ? noHistory(facts, nodes) : verdictsOn(pauses, nodes);
  },
};

/** Whether no node has a history. Returns false if a node could not be read, because that node may have one. */
function hasNoHistory(nodes: readonly NodeFacts[]): boolean {
  return nodes.every(
    ({ role, pauses }) => role === "slave" || (pauses?.histories === 0 && pauses.stopped === undefined),
  );
}

/** Reports a missing history only once: in a cluster the history of each name is on a different node. */
function noHistory(facts: NodeFacts, nodes: readonly NodeFacts[]): Verdict[] {
  if (facts !== nodes.find(({ pauses }) => pauses !== undefined)) return [];
  // Most users never pause a lock. A warning in every examination would not help them.
  return skipped(
    "there is no history, so lost pauses cannot be found; programs that pause keep one with recordHistory of holdfast/admin",
  );
}

/** Whether another node recorded the end of this pause. A mutex with a key has one history for each of its names. */
function isOverElsewhere(pause: RecordedPause, nodes: readonly NodeFacts[]): boolean {
  if (pause.key === undefined) return false;
  const isSame = (other: Pick<RecordedPause, "kind" | "name" | "key">): boolean => lockOf(other) === lockOf(pause);
  return nodes.some(
    ({ pauses }) =>
      pauses?.ends?.some((end) => isSame(end) && isEndOf(end, pause)) === true ||
      pauses?.recorded.some((other) => isSame(other) && isLater(other, pause)) === true,
  );
}

function verdictsOn(
  { nowMs, histories, stopped, recorded, isCut }: PauseFacts,
  nodes: readonly NodeFacts[],
): Verdict[] {
  const running = recorded
    .filter(({ untilAtMs }) => untilAtMs === undefined || untilAtMs > nowMs)
    .filter((pause) => !isOverElsewhere(pause, nodes));
  const lost = running.filter(({ isInForce }) => isInForce === false);
  const unseen = running.filter(({ isInForce }) => isInForce === undefined);
  const extent = histories === 1 ? "1 history" : `${histories} histories`;
  const rest = lost.slice(MOST_LISTED);
  const verdicts: Verdict[] = [
    ...lost.slice(0, MOST_LISTED).flatMap((pause) => found("warning", sentenceOf(pause), { fix: fixOf(pause) })),
    ...(rest.length > 0
      ? found("warning", `${counted(rest.length, "other pause")} no longer there: ${few(rest.map(({ name }) => name))}`)
      : []),
    ...(unseen.length > 0
      ? unknown(
          `whether ${few(unseen.map(nameOf))} is still paused cannot be seen from this server`,
          "inspect() of that lock, with its key option, shows the pause",
        )
      : []),
    ...(stopped === undefined
      ? []
      : unknown(
          `not all histories were read: ${extent}, and then ${stopped === "many" ? "there were too many" : "there was no time left"}`,
          stopped === "many" ? "holdfast history NAME and holdfast show NAME for what you paused" : MORE_TIME,
        )),
  ];
  return verdicts.length > 0
    ? verdicts
    : ok(`${extent}: no pause was lost${isCut === true ? ", as far as the histories go back" : ""}`);
}

function nameOf({ kind, name, key }: RecordedPause): string {
  return `${kind} ${name}${key === undefined ? "" : ` (key ${key})`}`;
}

function sentenceOf(pause: RecordedPause): string {
  const { by = "someone", label, untilAtMs } = pause;
  const why = label === undefined ? "" : ` ("${label}")`;
  const until = untilAtMs === undefined ? "until resumed" : `until ${formatInstant(untilAtMs)}`;
  return `${nameOf(pause)} was paused by ${by}${why} from ${formatInstant(startOf(pause))} ${until}, and is no longer paused`;
}

/**
 * `holdfast pause` takes neither a key nor a kind. It pauses the kind of lock that the name is in use as, or a mutex if
 * the name is not in use.
 */
function fixOf({ kind, name, key, label = "WHY", untilAtMs }: RecordedPause): string {
  const again =
    kind === "mutex" && key === undefined
      ? `run holdfast pause ${shellWord(name)} -m ${shellWord(label)}${untilAtMs === undefined ? "" : ` --until ${new Date(untilAtMs).toISOString()}`}`
      : `call pause() of that ${kind} in a program that keeps a history`;
  const resume = kind === "mutex" && key === undefined ? `run holdfast resume ${shellWord(name)}` : "call resume()";
  return `if the maintenance continues, ${again}; if it is over, ${resume}, so that the history shows the pause's end`;
}

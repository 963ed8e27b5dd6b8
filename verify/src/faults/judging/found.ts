/** Converts the findings of judges for the report. */
import type { History } from "../../history/history.js";
import type { HistoryRecord } from "../../history/records.js";
import { picture } from "../../picture/index.js";
import type { SweepResult } from "../../sweeps/index.js";
import type { Breach } from "../verdict.js";

/** A violation, with the records that show it. */
export interface Found {
  readonly property: string;
  readonly lockName: string;
  readonly message: string;
  readonly records: readonly HistoryRecord[];
}

/** The maximum number of violations shown per property. */
const SHOWN_EACH = 12;
const PICTURES_EACH = 4;
/** How much context a picture shows around a finding. */
const AROUND_MS = 400;

/** The findings of a sweep. */
export function foundBy({ property, violations }: SweepResult): Found[] {
  return violations.map(({ message, name, records }) => ({ property, lockName: name, message, records }));
}

/** For each property, the first breaches with pictures, some more without, and a note about the rest. */
export function breachesOf(
  found: readonly Found[],
  history: History,
  title: string,
): { readonly breaches: Breach[]; readonly breached: Record<string, number>; readonly notes: string[] } {
  const breaches: Breach[] = [];
  const seen = new Map<string, number>();
  for (const one of found) {
    const { property, lockName, message } = one;
    const count = (seen.get(property) ?? 0) + 1;
    seen.set(property, count);
    if (count > SHOWN_EACH) continue;
    const drawn = count <= PICTURES_EACH ? draw(one, history, title) : undefined;
    breaches.push({ property, lockName, message, ...(drawn === undefined ? {} : { picture: drawn }) });
  }
  const notes = Array.from(seen)
    .filter(([, count]) => count > SHOWN_EACH)
    .map(([property, count]) => `${property}: ${count} breaches, of which ${SHOWN_EACH} are shown`);
  return { breaches, breached: Object.fromEntries(seen), notes };
}

function draw({ lockName, message, records, property }: Found, history: History, title: string): string | undefined {
  const instants = records.flatMap(instantsOf).filter(Number.isFinite);
  if (instants.length === 0) return undefined;
  const fromMs = Math.min(...instants) - AROUND_MS;
  const untilMs = Math.max(...instants) + AROUND_MS;
  const isNear = (record: HistoryRecord): boolean => {
    const own = instantsOf(record).filter(Number.isFinite);
    return own.length > 0 && Math.min(...own) <= untilMs && Math.max(...own) >= fromMs;
  };
  const onLock = <Item extends HistoryRecord & { readonly lockName: string }>(items: readonly Item[]): Item[] =>
    items.filter((item) => item.lockName === lockName && isNear(item));
  const near: History = {
    ...history,
    operations: onLock(history.operations),
    lost: onLock(history.lost),
    held: onLock(history.held),
    effects: onLock(history.effects),
    faults: history.faults.filter(isNear),
    turns: [],
  };
  return picture(near, { title: `${title}: ${property}`, lockName, violation: { message, records }, fromMs, untilMs });
}

function instantsOf(record: HistoryRecord): number[] {
  switch (record.type) {
    case "operation":
      return [record.callMs, record.returnMs, record.validUntilMs ?? record.callMs];
    case "turn":
    case "fault":
      return [record.beganMs, record.endedMs];
    case "final-state":
      return [];
    default:
      return [record.atMs];
  }
}

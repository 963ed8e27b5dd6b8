/**
 * Refuses a name that is in use as another kind, before the first attempt.
 *
 * Each kind has separate keys, so a mutex and a read-write lock with the same name do not exclude each other. Users of
 * flock expect them to, because plain flock and `flock -s` exclude each other. Two runs that start at the same
 * moment can both pass this check, and the library's acquire does not repeat it.
 */

import { plain } from "@holdfast/console/text";
import type { Holdfast, Inspection } from "holdfast";
import { CliError, EXIT } from "../../frame/exit-codes.js";
import { processOf } from "./messages.js";

/** What each kind is called, and which flags of `run` select it. */
const KINDS: Readonly<Record<string, { readonly called: string; readonly remedy: string }>> = {
  mutex: { called: "a mutex", remedy: "leave out -s, -x and -N" },
  "read-write-lock": { called: "a read-write lock", remedy: "add -x, or -s to share it with other readers" },
  semaphore: { called: "a semaphore", remedy: "add -N with its number of permits" },
  election: { called: "an election", remedy: "see holdfast elect, or use another name" },
};

/**
 * Inspects the other kinds with this name, all at the same time.
 *
 * @throws CliError 65  the name is held or awaited as another kind
 */
export async function refuseOtherKinds(holdfast: Holdfast, name: string, kind: string): Promise<void> {
  const inspections: Readonly<Record<string, () => Promise<Inspection>>> = {
    mutex: () => holdfast.mutex(name).inspect(),
    "read-write-lock": () => holdfast.readWriteLock(name).write.inspect(),
    semaphore: () => holdfast.semaphore(name, { permits: 1 }).inspect(),
    election: () => holdfast.election(name).inspect(),
  };
  const others = Object.entries(inspections).filter(([other]) => other !== kind);
  const found = await Promise.all(others.map(async ([other, inspect]) => [other, await inspect()] as const));
  for (const [other, { holders, waiterCount }] of found) {
    const { called = other, remedy = "" } = KINDS[other] ?? {};
    const [holder] = holders;
    if (holder === undefined && waiterCount === 0) continue;
    const who = holder === undefined ? `${waiterCount} waiting` : `held by ${processOf(holder)}`;
    throw new CliError(
      EXIT.otherKind,
      `${plain(name)} is in use as ${called} (${who}), but this run requests ${KINDS[kind]?.called ?? kind}: ${kind === "election" ? "use another name" : remedy}`,
    );
  }
}

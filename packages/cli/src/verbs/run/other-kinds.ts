/**
 * One name, one kind: a lint, before the first attempt.
 *
 * Kinds have keys of their own, so a mutex and a read-write lock of one name do not exclude each other. Whoever comes from
 * flock, where plain and `-s` do, is told so. Two that begin in the same instant can slip through, and the library's own
 * acquire knows nothing of it.
 */

import { plain } from "@holdfast/console/text";
import type { Holdfast, Inspection } from "holdfast";
import { CliError, EXIT } from "../../frame/exit-codes.js";
import { processOf } from "./messages.js";

/** How each kind is called, and how to ask `run` for it. */
const KINDS: Readonly<Record<string, { readonly called: string; readonly remedy: string }>> = {
  mutex: { called: "a mutex", remedy: "leave out -s, -x and -N" },
  "read-write-lock": { called: "a read-write lock", remedy: "add -x, or -s to share it with other readers" },
  semaphore: { called: "a semaphore", remedy: "add -N with its number of permits" },
  election: { called: "an election", remedy: "see holdfast elect, or take another name" },
};

/**
 * Inspects the other kinds of that name: one write to the server, and one read.
 *
 * @throws CliError 65  one of them is held, or somebody waits for it
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
    const who = holder === undefined ? `${waiterCount} wait for it` : `held by ${processOf(holder)}`;
    throw new CliError(
      EXIT.otherKind,
      `${plain(name)} is in use as ${called} (${who}), and here it is ${KINDS[kind]?.called ?? kind}: ${kind === "election" ? "take another name" : remedy}`,
    );
  }
}

/** The smallest Redis users, as docs/safety.md prints them: what is tested is what is read. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { StoreError } from "../../src/core/errors.js";
import type { Complaint } from "./tour.js";

/** One line of the document, as arguments of ACL SETUSER after the name. */
export type Rules = readonly string[];

const DOCUMENT = fileURLToPath(new URL("../../../../docs/safety.md", import.meta.url));

const TEXT = readFileSync(DOCUMENT, "utf8");

const COMMANDS: readonly string[] = [...TEXT.matchAll(/^ACL SETUSER locks (?:.*\\\n)*.*$/gm)].map(
  ([command]) => command,
);

function rulesAt(index: number): Rules {
  const command = COMMANDS[index];
  if (command === undefined) throw new Error("docs/safety.md shows four ACL SETUSER locks");
  return command.split(/[\s\\]+/).slice(3);
}

/** All that the user needs on one server. */
export const ON_ONE_SERVER: Rules = rulesAt(0);

/** What Holdfast needs besides in a cluster. */
export const IN_A_CLUSTER: Rules = rulesAt(1);

/** What client libraries ask there, most of it before they send anything. */
export const CLIENTS_IN_A_CLUSTER: Rules = rulesAt(2);

/** What looking at all locks needs besides, on one server as in a cluster. */
export const FOR_LOOKING: Rules = rulesAt(3);

/** What locks need that others share. */
export const SHARED_LOCKS: Rules = rulesAt(4);

/** What a recipe needs besides, by its row of the table; nothing, if it has none. */
export function rulesOfRecipe(recipe: string): Rules {
  const [, cell = ""] = new RegExp(`^\\| \`${recipe}\` of \`holdfast/recipes\` \\| (.*) \\|$`, "m").exec(TEXT) ?? [];
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, rule = ""]) => rule);
}

/** Permissions that were refused, by the server's own list of refusals. */
export function refusedIn(log: unknown): string[] {
  // Each entry names, behind the word "object", what it is about.
  return (log as readonly unknown[][]).map((entry) => String(entry[entry.indexOf("object") + 1]));
}

/** Refusals: what failed for good. A slow machine fails too, and what waits for somebody who was refused. */
export function refusals(complaints: readonly Complaint[]): Complaint[] {
  return complaints.filter(
    ({ error, missing }) => missing !== undefined || (error instanceof StoreError && !error.transient),
  );
}

/** Refusals for another reason than that this permission was missing. */
export function others(complaints: readonly Complaint[], permission: string): Complaint[] {
  return refusals(complaints).filter(({ missing }) => !isNamed(permission, missing));
}

/** Whether what was named as missing is that very permission, or what its pattern stands for. */
export function isNamed(permission: string, missing: string | undefined): boolean {
  const words = (missing ?? "").split(" ");
  if (permission.startsWith("+")) return words.includes(permission);
  return words.some((word) => word.startsWith(permission.replace("*", "")));
}

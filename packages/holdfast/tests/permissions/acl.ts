/** The minimal Redis users of docs/permissions.md. Reading them from the document keeps it correct. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { StoreError } from "../../src/core/errors.js";
import type { Complaint } from "./tour.js";

/** One `ACL SETUSER` line of the document: its arguments after the user name. */
export type Rules = readonly string[];

const DOCUMENT = fileURLToPath(new URL("../../../../docs/permissions.md", import.meta.url));

const TEXT = readFileSync(DOCUMENT, "utf8");

const COMMANDS: readonly string[] = [...TEXT.matchAll(/^ACL SETUSER locks (?:.*\\\n)*.*$/gm)].map(
  ([command]) => command,
);

function rulesAt(index: number): Rules {
  const command = COMMANDS[index];
  if (command === undefined) throw new Error("docs/permissions.md shows four ACL SETUSER locks");
  return command.split(/[\s\\]+/).slice(3);
}

/** Everything that the user needs on one server. */
export const ON_ONE_SERVER: Rules = rulesAt(0);

/** What Holdfast also needs in a cluster. */
export const IN_A_CLUSTER: Rules = rulesAt(1);

/** Commands that client libraries send in a cluster, mostly when they connect. */
export const CLIENTS_IN_A_CLUSTER: Rules = rulesAt(2);

/** The part of these that Redis 6.2 rejects, because it lacks the commands. */
export const SHARDED_CHANNELS: Rules =
  /rejects rules for them: leave out\n`([^`]+)` there/.exec(TEXT)?.[1]?.split(" ") ?? [];

/** What listing all locks also needs, on one server and in a cluster. */
export const FOR_LOOKING: Rules = rulesAt(3);

/** What locks shared with other systems need. */
export const SHARED_LOCKS: Rules = rulesAt(4);

/** What a recipe also needs, from its row of the table. Empty if the table has no such row. */
export function rulesOfRecipe(recipe: string): Rules {
  const [, cell = ""] = new RegExp(`^\\| \`${recipe}\` of \`@holdfast/recipes\` \\| (.*) \\|$`, "m").exec(TEXT) ?? [];
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, rule = ""]) => rule);
}

/** A server of the tests. */
interface Commanded {
  command(...words: (string | number)[]): Promise<unknown>;
}

/** Whether a server has sharded channels. */
export async function hasShardedChannels(server: Commanded): Promise<boolean> {
  const [known] = (await server.command("COMMAND", "INFO", "SSUBSCRIBE")) as unknown[];
  return known !== null;
}

/** Gives a user these rules, as the document says for the version of the server. */
export async function permit(server: Commanded, username: string, rules: Rules): Promise<void> {
  const isKnown = await hasShardedChannels(server);
  const accepted = rules.filter((rule) => isKnown || !SHARDED_CHANNELS.includes(rule));
  await server.command("ACL", "SETUSER", username, ...accepted);
}

/** What client libraries send when they connect. Servers that do not know such a command reject a rule for it, and need none. */
const CONNECTING: Rules = ["+client|setinfo", "+client|maint_notifications"];

/**
 * Permits what client libraries send when they connect.
 *
 * @throws Error  the server rejected a rule for a reason other than an unknown command
 */
export async function permitConnecting(server: Commanded, username: string): Promise<void> {
  for (const rule of CONNECTING) {
    await server.command("ACL", "SETUSER", username, rule).catch((error: unknown) => {
      if (!/Unknown command or category name/.test(String(error))) throw error;
    });
  }
}

/** Permissions that were refused, from the server's ACL log. */
export function refusedIn(log: unknown): string[] {
  // The word after "object" in an entry is the refused command, key or channel.
  return (log as readonly unknown[][]).map((entry) => String(entry[entry.indexOf("object") + 1]));
}

/** Permanent failures. Leaves out failures of a slow machine, or of a step that waits for a refused one. */
export function refusals(complaints: readonly Complaint[]): Complaint[] {
  return complaints.filter(
    ({ error, missing }) => missing !== undefined || (error instanceof StoreError && !error.transient),
  );
}

/** Refusals for any reason other than this missing permission. */
export function others(complaints: readonly Complaint[], permission: string): Complaint[] {
  return refusals(complaints).filter(({ missing }) => !isNamed(permission, missing));
}

/** Whether the permission named as missing is this one or matches its pattern. */
export function isNamed(permission: string, missing: string | undefined): boolean {
  const words = (missing ?? "").split(" ");
  if (permission.startsWith("+")) return words.includes(permission);
  return words.some((word) => word.startsWith(permission.replace("*", "")));
}

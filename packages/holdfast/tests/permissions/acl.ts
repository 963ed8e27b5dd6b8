/** The smallest Redis users, as docs/safety.md prints them: what is tested is what is read. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** One line of the document, as arguments of ACL SETUSER after the name. */
export type Rules = readonly string[];

const DOCUMENT = fileURLToPath(new URL("../../../../docs/safety.md", import.meta.url));

/** Rules of the user of that name. @throws Error  the document has none */
export function rulesOf(user: string): Rules {
  const [, rules] =
    new RegExp(`^ACL SETUSER ${user} ((?:.*\\\\\\n)*.*)$`, "m").exec(readFileSync(DOCUMENT, "utf8")) ?? [];
  if (rules === undefined) throw new Error(`docs/safety.md has no ACL SETUSER ${user}`);
  return rules.split(/[\s\\]+/).filter((rule) => rule !== "");
}

/**
 * `@holdfast/console/text`: text from others, made safe to show. For our own packages; it may change in any version.
 */
import type { LockEntry } from "holdfast/admin";
import { plain } from "./plain.js";
import { shellWord } from "./shell-word.js";

export { plain } from "./plain.js";
export { shellWord } from "./shell-word.js";

/** Up to the last `@` of the word, since a password may hold an `@` or a `/` that somebody forgot to encode. */
const URL_WITH_SECRET = /\b(rediss?:\/\/)(\S*)@/gi;

/** Passwords that this process was given, however a message comes to repeat one. */
const secrets = new Set<string>();

/** From now on `redact` takes this out of every text; too short to tell from a word is left alone. */
export function keepSecret(secret: string | undefined): void {
  if (secret !== undefined && secret.length > 3) secrets.add(secret);
}

/**
 * The text with the passwords of Redis URLs, and those that were given in other ways, replaced by `***`. User names stay,
 * if they stand before a colon: what is alone before the `@` may be a password.
 */
export function redact(text: string): string {
  let shown = text.replace(URL_WITH_SECRET, (_, scheme: string, userInfo: string) => {
    const user = /^([^:]*):/.exec(userInfo)?.[1];
    return `${scheme}${user === undefined ? "" : `${user}:`}***@`;
  });
  for (const secret of secrets) shown = shown.replaceAll(secret, "***");
  return shown;
}

/** `held on 2 of 3 servers, a majority; 1 did not reply. It is lost if one more fails`. */
export function serversSentence({ holding, answered, total }: NonNullable<LockEntry["servers"]>): string {
  const silent = answered < total ? `; ${total - answered} did not reply` : "";
  const isLast = holding === Math.floor(total / 2) + 1 && total > 1;
  return `held on ${holding} of ${total} servers, a majority${silent}${isLast ? ". It is lost if one more fails" : ""}`;
}

/** What is wrong with a lock that cannot be read, and what frees its name; undefined if it can be. */
export function unreadableSentence({ unreadable }: Pick<LockEntry, "unreadable">): string | undefined {
  if (unreadable === undefined) return undefined;
  if (unreadable.reason !== undefined) return `cannot be read: ${plain(unreadable.reason)}`;
  const [key = "", ...others] = unreadable.keys.map(plain);
  const command = `redis-cli UNLINK ${shellWord(key)}`;
  const which = others.length === 0 ? `the key ${key} is` : `one of the keys ${[key, ...others].join(", ")} is`;
  return `cannot be read: ${which} of another type than Holdfast writes. Look at it; if it is not needed: ${command}`;
}

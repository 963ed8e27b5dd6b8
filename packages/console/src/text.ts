/**
 * `@holdfast/console/text`: makes untrusted text safe to show. For Holdfast's own packages; it may change in any
 * version.
 */
import type { LockEntry } from "holdfast/admin";
import { plain } from "./plain.js";
import { shellWord } from "./shell-word.js";

export { plain } from "./plain.js";
export { shellWord } from "./shell-word.js";

/** Matches up to the last `@` of the word, because an unencoded password may contain `@` or `/`. */
const URL_WITH_SECRET = /\b(rediss?:\/\/)(\S*)@/gi;

/** Passwords that this process was given, in case an error message contains one. */
const secrets = new Set<string>();

/** Makes `redact` remove this secret from every string. Secrets too short to tell from ordinary words are ignored. */
export function keepSecret(secret: string | undefined): void {
  if (secret !== undefined && secret.length > 3) secrets.add(secret);
}

/**
 * Replaces passwords in Redis URLs, and other known secrets, with `***`. A user name is kept only if a colon follows
 * it: a single part before the `@` may be a password.
 */
export function redact(text: string): string {
  let shown = text.replace(URL_WITH_SECRET, (_, scheme: string, userInfo: string) => {
    const user = /^([^:]*):/.exec(userInfo)?.[1];
    return `${scheme}${user === undefined ? "" : `${user}:`}***@`;
  });
  for (const secret of secrets) shown = shown.replaceAll(secret, "***");
  return shown;
}

/** `held on 2 of 3 servers, a majority; 1 did not reply. If either of these 2 servers fails, the lock is lost`. */
export function serversSentence({ holding, answered, total }: NonNullable<LockEntry["servers"]>): string {
  const silent = answered < total ? `; ${total - answered} did not reply` : "";
  const isLast = holding === Math.floor(total / 2) + 1 && total > 1;
  const which = holding === 2 ? "either of these 2 servers" : `one of these ${holding} servers`;
  const risk = isLast ? `. If ${which} fails, the lock is lost` : "";
  return `held on ${holding} of ${total} servers, a majority${silent}${risk}`;
}

/** The known addresses of the independent servers that have a lock of this name; empty for most locks. */
export function addressesOf({ server, perServer = [] }: Pick<LockEntry, "server" | "perServer">): readonly string[] {
  return [server, ...perServer.map((lock) => lock.server)].flatMap((one) => one?.address ?? []);
}

/** Like `addressesOf`, with the number of the server in `createHoldfast` if its address is unknown: `server 1`. */
export function serversOf({ server, perServer = [] }: Pick<LockEntry, "server" | "perServer">): readonly string[] {
  return [server, ...perServer.map((lock) => lock.server)].flatMap((one) =>
    one === undefined ? [] : (one.address ?? `server ${one.index}`),
  );
}

/** Why a lock cannot be read, and how to free its name; undefined if it can be read. */
export function unreadableSentence({ unreadable }: Pick<LockEntry, "unreadable">): string | undefined {
  if (unreadable === undefined) return undefined;
  if (unreadable.reason !== undefined) return `cannot be read: ${plain(unreadable.reason)}`;
  const [key = "", ...others] = unreadable.keys.map(plain);
  const type = "of a type that Holdfast does not write";
  if (others.length > 0) {
    const which = `one of the keys ${[key, ...others].join(", ")} is ${type}`;
    return `cannot be read: ${which}. Check them with redis-cli TYPE, and UNLINK only the one that is wrong`;
  }
  const command = `redis-cli UNLINK ${shellWord(key)}`;
  return `cannot be read: the key ${key} is ${type}. Look at it; if it is not needed: ${command}`;
}

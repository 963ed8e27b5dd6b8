/** Describes Redis errors in plain words, with the doctor's hint. */
import { redact } from "./text.js";

/** The content of the page that replaces all others while the console cannot use Redis. */
export interface Trouble {
  readonly error: string;
  readonly hint: string;
}

const UNKNOWN_HINT = "Check the log of Redis and the network between it and this console, and run holdfast doctor.";

/** Internal messages from client libraries that do not help an operator. */
const OF_THE_LIBRARY =
  /^(?:Command timed out|Reached the max retries|Connection is closed|Stream isn't writeable|Socket timeout)/i;

const HINTS: readonly (readonly [pattern: RegExp, error: string, hint: string])[] = [
  [
    /ECONNREFUSED/,
    "Nothing listens at that address.",
    "Start Redis, or check the host and port, and whether it binds to an address that this machine can reach.",
  ],
  [
    /ENOTFOUND|EAI_AGAIN/,
    "The host name cannot be resolved.",
    "Check the host name in the URL and the DNS of this machine.",
  ],
  [
    /EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|connect timeout/i,
    "The host does not reply.",
    "A firewall, a route, or a machine that is off: try redis-cli ping from this machine.",
  ],
  [
    /NOAUTH|WRONGPASS|invalid username-password|AUTH/,
    "Redis refused the user or the password.",
    "Check the user and the password of the console's connection (--user, --password-file, or the URL).",
  ],
  [
    /NOPERM/,
    "Redis does not permit this user to do that.",
    "holdfast doctor --only acl prints the missing ACL SETUSER line.",
  ],
  [/LOADING/, "Redis is loading its data.", "It was restarted a moment ago, and replies when it has finished."],
  [
    /MISCONF/,
    "Redis cannot save its data and refuses all writes.",
    "Check disk space and the last save (INFO persistence). Until it can save, locks cannot be acquired.",
  ],
  [
    /\bOOM\b/,
    "Redis is out of memory and refuses writes.",
    "Raise maxmemory or move data to another Redis. Held leases can still be renewed and released.",
  ],
  [
    /READONLY/,
    "The server is a replica.",
    "Connect the console to the primary, or through Sentinel or as a cluster (--sentinel, --cluster).",
  ],
  [
    /CLUSTERDOWN|ClusterAllFailed|TRYAGAIN/,
    "The cluster does not serve all of its slots.",
    "Run CLUSTER INFO, or holdfast doctor --only cluster.",
  ],
  [
    /BUSY\b/,
    "Redis is busy with a script that runs too long.",
    "SCRIPT KILL ends it if it has written nothing. SLOWLOG GET shows it once it has finished.",
  ],
  [
    /protected mode|DENIED/i,
    "Redis is in protected mode and refuses clients on other machines.",
    "Set a password or an ACL user; do not only switch the mode off.",
  ],
  [
    /certificate|SSL|TLS|EPROTO/i,
    "The encrypted connection was refused.",
    "Check whether the URL needs rediss:// or redis://, and set the file of your own certificate authority (--tls-ca).",
  ],
  [/No server|quorum|majority/i, "Too few of the servers reply.", "A lock on a quorum needs more than half of them."],
  [
    /max retries|timed? ?out|(?:did not|no) (?:answer|reply)|closed|ECONNRESET|EPIPE|isn't writeable/i,
    "Redis does not reply.",
    "It is down, stalled, or cut off: try redis-cli ping from this machine, and look at the log of Redis.",
  ],
];

/**
 * Describes an error from any client library. Never contains a password.
 *
 * @param connectionError  why the connection is down, for errors that only say that no reply came
 */
export function troubleOf(error: unknown, connectionError?: unknown): Trouble {
  const texts = chainOf(error);
  const all = texts.join(" · ");
  const last = redact(texts.at(-1) ?? String(error)).slice(0, 300);
  const isOfTheLibrary = OF_THE_LIBRARY.test(last);
  if (isOfTheLibrary && connectionError !== undefined) return troubleOf(connectionError);
  for (const [pattern, plain, hint] of HINTS) {
    if (pattern.test(all)) return { error: isOfTheLibrary ? plain : `${plain} (${last})`, hint };
  }
  return { error: last, hint: UNKNOWN_HINT };
}

/** Whether the error is WRONGTYPE: Redis is up, but a key has a foreign type. */
export function isWrongType(error: unknown): boolean {
  return chainOf(error).some((text) => /\bWRONGTYPE\b/.test(text));
}

/** Whether servers replied, but not enough to tell whether a Redlock is held. */
export function isUndecided(error: unknown): boolean {
  const { code, answers } = (error ?? {}) as {
    readonly code?: unknown;
    readonly answers?: readonly { answer: string }[];
  };
  return code === "ERR_LOCK_QUORUM" && answers?.some(({ answer }) => answer === "held") === true;
}

/** Whether Redis replied but refused the command, because of the user, its memory, its disk or its role. */
export function isRefusal(error: unknown): boolean {
  return chainOf(error).some((text) => /\b(?:NOPERM|OOM|MISCONF|READONLY)\b/.test(text));
}

/** Whether the error means that Redis is unreachable or refuses service, rather than that the request was invalid. */
export function isTrouble(error: unknown): boolean {
  if (isWrongType(error) || isUndecided(error)) return false;
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  // 69 and 77 are the CLI's exit codes for a failed connection.
  return (
    code === "ERR_LOCK_STORE" ||
    code === "ERR_LOCK_QUORUM" ||
    code === 69 ||
    code === 77 ||
    name === "ReplyError" ||
    name === "NobodyAnswersError"
  );
}

function chainOf(error: unknown): readonly string[] {
  const texts: string[] = [];
  for (let one = error; one instanceof Error && texts.length < 10; one = one.cause) {
    const { code, lastNodeError } = one as { readonly code?: unknown; readonly lastNodeError?: unknown };
    const isCodeSaid = typeof code !== "string" || code.startsWith("ERR_LOCK") || one.message.includes(code);
    texts.push(isCodeSaid ? one.message : `${one.message} ${String(code)}`.trim());
    if (lastNodeError instanceof Error) texts.push(lastNodeError.message);
  }
  return texts;
}

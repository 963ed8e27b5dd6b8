/**
 * Classifies the rejections of client libraries: whether the script may have run, whether a retry may succeed, and
 * which permission is missing.
 *
 * Only the message is examined, because every library has its own error classes, and some reject with values that are
 * not Errors. An unknown rejection counts as "may have run": a wrong "maybe" only costs a retry, but a wrong "no" can
 * break mutual exclusion.
 *
 * If the Redis user lacks the permission for a command, the server's error names the command. If a script calls the
 * command, the error has only a line number, so the name is read from that line of the script.
 */

import { StoreError, type StoreFailure, warn } from "../core/errors.js";
import type { ServerAddress } from "../core/store.js";

/** The server refused before the script could change anything, and may accept the same call later. */
const REFUSED_FOR_NOW =
  /^(?:NOSCRIPT|NoScriptError|LOADING|BusyLoadingError|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|MISCONF|NOREPLICAS|OOM|UNBLOCKED|ERR max number of clients)\b/i;

/** The server refused before the script could change anything, and will refuse again. */
const REFUSED =
  /^(?:NOAUTH|NOPERM|PermissionDenied|WRONGPASS|DENIED|CROSSSLOT|MOVED|ASK|NOPROTO|ERR unknown command|ERR wrong number of arguments|ERR Number of keys)\b/i;

/**
 * Refusals that can occur only at a script's first write, so the script has written nothing. After its first write, a
 * script is no longer refused with `OOM`.
 */
const REFUSES_ALL_WRITES = /^(?:READONLY|MISCONF|NOREPLICAS|OOM)\b/i;

/**
 * Another node serves the slot. A cluster client follows the redirect, and rejects only if it was redirected too many
 * times. GLIDE spells the codes `Moved` and `Ask`.
 */
const ELSEWHERE = /^(?:MOVED|ASK)\b/i;
const NOT_HERE = { mayHaveRun: false, transient: true };

/** The slot moved to another node, or the cluster went down, while the script was running. A later call may succeed. */
const GONE_MEANWHILE =
  /\bScript attempted to (?:access a non local key|execute a write command while the cluster is down)/;

/** How Redis 6 and 7 mark an error that was raised inside a script. */
const RAISED_IN_SCRIPT = /\bscript: ?[0-9a-f]{40}|user_script|\bf_[0-9a-f]{40}/;

/** A server's error begins with one word in capitals; a client library's own messages do not. */
const SERVER_REPLY = /^[A-Z][A-Z0-9_]+[ :]/;

/** The client library never sent the command. */
const NOT_SENT = /isn't writeable|offline queue is (?:disabled|full)|client is offline|queue is full/i;

/** The owner has closed the client, so it sends nothing until it is opened again. */
const CLIENT_CLOSED = /^the client is closed\b|unable to execute requests; the client is closed/i;

/** True if the server does not know the script. GLIDE rewrites the code to `NoScriptError`. */
export function isUnknownScript(cause: unknown): boolean {
  return /NO_?SCRIPT/i.test(messageOf(cause));
}

/** True if the server is too old for the command, or if the command was renamed or disabled. */
export function isUnknownCommand(cause: unknown): boolean {
  return /^ERR unknown command\b/i.test(serverWords(messageOf(cause)));
}

/** True for a server error that a retry would hit again, on any server of the cluster. */
export function refusesForGood(cause: unknown): boolean {
  const message = serverWords(messageOf(cause));
  return SERVER_REPLY.test(message) && !ELSEWHERE.test(message) && !REFUSED_FOR_NOW.test(message);
}

/** True if the server is a replica or became one. */
export function isReadOnly(cause: unknown): boolean {
  return /\bREADONLY\b/i.test(messageOf(cause));
}

/**
 * Classifies a rejection of a script call.
 *
 * @param mayBeSecondSend  the client may have sent the command twice, so a refusal applies only to the last attempt
 * @param isCluster  the client follows moved slots, so a retry after MOVED or ASK eventually succeeds
 */
export function failureOf(cause: unknown, mayBeSecondSend: boolean, isCluster = false): StoreFailure {
  const message = serverWords(messageOf(cause));
  const { mayHaveRun, transient } = isCluster && ELSEWHERE.test(message) ? NOT_HERE : sort(message);
  return { mayHaveRun: mayHaveRun || mayBeSecondSend, transient, cause };
}

function sort(message: string): { mayHaveRun: boolean; transient: boolean } {
  const inScript = RAISED_IN_SCRIPT.test(message);
  if (REFUSED_FOR_NOW.test(message)) {
    return { mayHaveRun: inScript && !REFUSES_ALL_WRITES.test(message), transient: true };
  }
  if (inScript) return { mayHaveRun: true, transient: GONE_MEANWHILE.test(message) };
  if (REFUSED.test(message)) return { mayHaveRun: false, transient: false };
  if (CLIENT_CLOSED.test(message)) return { mayHaveRun: false, transient: false };
  if (NOT_SENT.test(message)) return { mayHaveRun: false, transient: true };
  return { mayHaveRun: true, transient: !SERVER_REPLY.test(message) };
}

/**
 * Restores the server's original message. GLIDE adds a prefix to some errors and replaces some error codes. If a
 * command in a script fails, Redis 6 puts the position in the script before the error.
 */
function serverWords(message: string): string {
  return message
    .replace(/^An error was signalled by the server(?:: -|:) /i, "")
    .replace(/^ResponseError: /, "ERR ")
    .replace(/^ERR Error running script \(call to (f_[0-9a-f]{40})\): .*?: -([A-Z]+ .*)$/s, "$2 script: $1");
}

/** True if the client library itself timed out while waiting for a reply. */
export function isTimeout(cause: unknown): boolean {
  return /^(?:command )?timed out$/i.test(messageOf(cause));
}

/** The message of any thrown value. */
export function messageOf(cause: unknown): string {
  if (cause instanceof Error) return cause.message;
  try {
    return String(cause);
  } catch {
    return "an error without a message";
  }
}

/** The address of a server for an error message, followed by the client's last error if there was one. */
export function placeOf(server: ServerAddress | undefined, lastError?: string): string {
  const { host, port } = server ?? { host: "the server", port: undefined };
  const place = port === undefined ? host : `${host}:${port}`;
  return lastError === undefined || lastError === "" ? place : `${place} (${lastError})`;
}

/**
 * Creates the error for a request that certainly did not run.
 *
 * @param name  the script, channel or key that the request concerns
 */
export function notRun(name: string, cause: unknown, transient: boolean, missingPermission?: string): StoreError {
  return new StoreError(name, { mayHaveRun: false, transient, cause, missingPermission });
}

/** The request that the server refused. */
export interface Refused {
  /** Text of the script, if the request was a script. */
  readonly source?: string | undefined;
  readonly keys?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
}

/** The errors for a missing permission, as worded by Redis 6, by Redis 7 and later, and by GLIDE. */
const COMMAND = /no permissions to run the '([^']+)' command( or its subcommand)?/i;
/** The subcommands that Holdfast sends, by command. Needed because the errors of Redis 6 name only the command. */
const SUBCOMMANDS: Readonly<Record<string, string>> = { script: "script|load", cluster: "cluster|myid" };
const COMMAND_IN_SCRIPT = /script can't run this command/i;
const KEY = /no permissions to access (?:one of the keys|a key|the '.*' key)|can't access at least one of the keys/i;
const CHANNEL =
  /no permissions to access (?:one of the channels|a channel|the '.*' channel)|can't publish to the channel/i;
/** The line number in an error that was raised inside a script. */
const LINE = /user_script: ?(\d+)/;
/** A command, and the word after it, which may be a subcommand. */
const CALL = /redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g;
/** Maximum number of lines that one call spans. */
const LINES_OF_A_CALL = 8;

/**
 * The ACL rule that would have permitted the request, such as `+zadd`, `~hf:mutex:{a}` or `&hf:in:*`. Several rules if
 * the error does not say which one is missing; undefined if the server refused for another reason.
 */
export function missingPermission(cause: unknown, { source, keys = [], channels = [] }: Refused): string | undefined {
  const message = messageOf(cause);
  const [, command, orSubcommand] = COMMAND.exec(message) ?? [];
  if (command !== undefined) {
    const name = command.toLowerCase();
    return `+${(orSubcommand === undefined ? undefined : SUBCOMMANDS[name]) ?? name}`;
  }
  if (KEY.test(message)) return keys.map((key) => `~${key}`).join(" ") || "~ for its keys";
  if (CHANNEL.test(message)) return channels.map((channel) => `&${channel}`).join(" ") || "& for its channels";
  if (!COMMAND_IN_SCRIPT.test(message)) return undefined;
  return commandsAt(source ?? "", Number(LINE.exec(message)?.[1] ?? 0)) || "+ for its commands";
}

/** The error for a command that no user may call from a script, or that was renamed on the server. */
const FORBIDDEN = /not allowed from script|unknown (?:Redis |Valkey )?command called from script/i;

/**
 * The command that the server forbids in scripts, such as `TIME`; undefined if the server refused for another reason.
 */
export function forbiddenCommand(cause: unknown, source: string): string | undefined {
  const message = messageOf(cause);
  if (!FORBIDDEN.test(message)) return undefined;
  const commands = commandsAt(source, Number(LINE.exec(message)?.[1] ?? 0));
  return commands.replaceAll("+", "").replaceAll("|", " ").toUpperCase() || "Redis commands";
}

/**
 * Advice for an error from a server that lacks a feature that every Holdfast script needs. Undefined for any other
 * error.
 *
 * The scripts are known to be valid, so a syntax error inside one means that the server is too old for an option: `SET`
 * with `PX` and `GET` needs Redis 6.2.
 */
export function lackOf(cause: unknown): string | undefined {
  const message = serverWords(messageOf(cause));
  if (/\bERR syntax error\b/i.test(message) && RAISED_IN_SCRIPT.test(message)) {
    return "Holdfast needs Redis 6.2 or later, or Valkey (docs/platforms.md).";
  }
  if (/^ERR unknown command ['`]?(?:evalsha|script)\b/i.test(message) || /\bfind scripting engine\b/i.test(message)) {
    return "Holdfast needs Lua scripts: allow EVALSHA and SCRIPT, or load the Lua module of Valkey (docs/platforms.md).";
  }
  return undefined;
}

/** The ACL rules for the commands called on this line of a script, or in the call that ends on it. */
function commandsAt(source: string, line: number): string {
  const lines = source.split("\n");
  for (let at = line; at > Math.max(0, line - LINES_OF_A_CALL); at -= 1) {
    const calls = [...(lines[at - 1] ?? "").matchAll(CALL)];
    // Only PUBSUB has subcommands here; an uppercase word after any other command is an option.
    const rules = calls.map(([, name = "", sub]) => (name === "PUBSUB" && sub ? `+pubsub|${sub}` : `+${name}`));
    if (rules.length > 0) return [...new Set(rules)].join(" ").toLowerCase();
  }
  return "";
}

/**
 * Warns once for each missing ACL rule and each type of channel. Each hub has its own instance. A missing permission to
 * subscribe causes no error, because waiters then poll.
 */
export class ForbiddenChannels {
  readonly #warned = new Set<string>();

  /** Warns if `cause` means that the user lacks a permission on `channel`. @returns the missing rule, or undefined */
  warn(cause: unknown, channel: string): string | undefined {
    const missing = missingPermission(cause, { channels: [channel] });
    // Channels of one type differ only in the id or name after the second colon.
    const sort = missing?.replace(/^(&[^:]*:[^:]*:).*$/, "$1*");
    if (sort === undefined || this.#warned.has(sort)) return missing;
    this.#warned.add(sort);
    warn(
      "HOLDFAST_CHANNEL_FORBIDDEN",
      `The Redis user lacks ${sort}, which Holdfast needs for messages.`,
      "Without it, waiters poll the server, so they acquire late and out of order. Grant the permission: " +
        `ACL SETUSER <user> ${sort} (docs/permissions.md).`,
    );
    return missing;
  }
}

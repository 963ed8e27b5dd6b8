/**
 * What a client library's rejection says about the script: did it run, and is it worth asking again?
 *
 * Only the text is looked at, since every library has classes of its own and some reject with no Error at
 * all. What is not known here counts as "may have run": that costs a retry, the opposite costs a lock.
 */

import type { StoreFailure } from "../core/errors.js";
import type { ServerAddress } from "../core/store.js";

/** The server refused before the script could change anything, and may accept the same call later. */
const REFUSED_FOR_NOW =
  /^(?:NOSCRIPT|NoScriptError|LOADING|BusyLoadingError|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|MISCONF|NOREPLICAS|OOM|UNBLOCKED|ERR max number of clients)\b/i;

/** The server refused before the script could change anything, and will refuse again. */
const REFUSED =
  /^(?:NOAUTH|NOPERM|PermissionDenied|WRONGPASS|DENIED|CROSSSLOT|MOVED|ASK|NOPROTO|ERR unknown command|ERR wrong number of arguments|ERR Number of keys)\b/i;

/**
 * Refusals that a script meets at its first write or never, so that it has written nothing. `OOM`: once a script has written, the
 * server lets it finish.
 */
const REFUSES_ALL_WRITES = /^(?:READONLY|MISCONF|NOREPLICAS|OOM)\b/i;

/** The slot is served by another node. A client of a cluster goes there, and tells of it only if it was sent round in a circle. */
const ELSEWHERE = /^(?:MOVED|ASK)\b/;
const NOT_HERE = { mayHaveRun: false, transient: true };

/** A slot that is on its way from node to node may go while a script runs; the next call is sent where it went. */
const GONE_MEANWHILE =
  /\bScript attempted to (?:access a non local key|execute a write command while the cluster is down)/;

/** How Redis 6 and 7 mark an error that was raised while a script ran. */
const RAISED_IN_SCRIPT = /\bscript: ?[0-9a-f]{40}|user_script|\bf_[0-9a-f]{40}/;

/** A server's error begins with one word in capitals; a client library's own messages do not. */
const SERVER_REPLY = /^[A-Z][A-Z0-9_]+[ :]/;

/** The client library never sent the command. */
const NOT_SENT = /isn't writeable|offline queue is (?:disabled|full)|client is offline|queue is full/i;

/** The owner has closed the client, so nothing is sent until it is opened again. */
const CLIENT_CLOSED = /^the client is closed\b|unable to execute requests; the client is closed/i;

/** True if the server does not know the script. GLIDE rewrites the code to `NoScriptError`. */
export function isUnknownScript(cause: unknown): boolean {
  return /NO_?SCRIPT/i.test(messageOf(cause));
}

/** True if the server is too old for the command, or has been told to forget it. */
export function isUnknownCommand(cause: unknown): boolean {
  return /^ERR unknown command\b/i.test(serverWords(messageOf(cause)));
}

/** True for an answer of the server that will be the same next time, wherever in a cluster it comes from. */
export function refusesForGood(cause: unknown): boolean {
  const message = serverWords(messageOf(cause));
  return SERVER_REPLY.test(message) && !ELSEWHERE.test(message) && !REFUSED_FOR_NOW.test(message);
}

/** True if the server is a replica, or became one. */
export function isReadOnly(cause: unknown): boolean {
  return /\bREADONLY\b/.test(messageOf(cause));
}

/**
 * Sorts a rejection of a script call.
 *
 * @param mayBeSecondSend  the client may have sent the command twice, so a refusal speaks only of the last time
 * @param isCluster  the client follows its slots, so what is elsewhere is found in time
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

/** GLIDE puts a sentence before some of the server's words, and words of its own in place of some codes. */
function serverWords(message: string): string {
  return message.replace(/^An error was signalled by the server(?:: -|:) /i, "").replace(/^ResponseError: /, "ERR ");
}

/** True if the client library itself has given up waiting for the reply to a command. */
export function isTimeout(cause: unknown): boolean {
  return /^(?:command )?timed out$/i.test(messageOf(cause));
}

/** The text of anything that can be thrown. */
export function messageOf(cause: unknown): string {
  if (cause instanceof Error) return cause.message;
  try {
    return String(cause);
  } catch {
    return "an error without text";
  }
}

/** A server as an error shows it, with what the client has said of it. */
export function placeOf(server: ServerAddress | undefined, lastError?: string): string {
  const { host, port } = server ?? { host: "the server", port: undefined };
  const place = port === undefined ? host : `${host}:${port}`;
  return lastError === undefined || lastError === "" ? place : `${place} (${lastError})`;
}

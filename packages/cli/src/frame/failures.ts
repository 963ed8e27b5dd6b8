/** Maps an error to an exit code. Uses the error's `code` and not its class, so that no class needs to be imported. */

import { plain } from "@holdfast/console/text";
import { CliError, EXIT } from "./exit-codes.js";

const CODES: Readonly<Record<string, number>> = {
  ERR_LOCK_ACQUIRE_TIMEOUT: EXIT.notNow,
  ERR_LOCK_PAUSED: EXIT.notNow,
  ERR_LOCK_CAPACITY_MISMATCH: EXIT.otherKind,
  ERR_LOCK_LEASE_LOST: EXIT.lost,
  ERR_LOCK_STORE: EXIT.unreachable,
  ERR_LOCK_QUORUM: EXIT.unreachable,
  ERR_LOCK_EVICTION: EXIT.unreachable,
  ERR_LOCK_PROTOCOL: EXIT.unreachable,
  ERR_LOCK_CLOSED: EXIT.unreachable,
  ERR_LOCK_UNSUPPORTED: EXIT.usage,
};

const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b|invalid username-password|AUTH .*called without any password/i;
const NO_SERVER = /^(E[A-Z]+|UND_.*)$/;
const MOST_CAUSES = 10;

/** Returns the error as one line and an exit code. */
export function failureOf(error: unknown): CliError {
  if (error instanceof CliError) return error;
  const chain = causesOf(error);
  const [first] = chain;
  if (first === undefined) return new CliError(EXIT.internal, String(error));
  const { code, capacity, lockName } = first as { code?: unknown; capacity?: unknown; lockName?: unknown };
  if (code === "ERR_LOCK_CAPACITY_MISMATCH") {
    // The library's message names methods of its API, which do not exist on the command line.
    const message = `${plain(String(lockName))} has ${String(capacity)} permits, but -N is different; every user must pass the same number: -N ${String(capacity)}`;
    return new CliError(EXIT.otherKind, message, { cause: error });
  }
  return new CliError(codeOf(first, chain), first.message.split("\n")[0] ?? "", { cause: error });
}

/** Whether Redis refused the user's permissions or credentials. */
export function isRefusal(error: unknown): boolean {
  return causesOf(error).some(
    (one) => REFUSED.test(one.message) || (one as { missingPermission?: unknown }).missingPermission !== undefined,
  );
}

function codeOf(error: Error, chain: readonly Error[]): number {
  const { code } = error as NodeJS.ErrnoException;
  if (isRefusal(error)) return EXIT.refused;
  // The key exists but is not a lock of Holdfast.
  if (chain.some(({ message }) => /\bWRONGTYPE\b/.test(message))) return EXIT.otherKind;
  const known = code === undefined ? undefined : CODES[code];
  if (known !== undefined) return known;
  const isOfClient = /^(ReplyError|MaxRetriesPerRequestError|ClusterAllFailedError)$/.test(error.name);
  const isOfNetwork = code !== undefined && NO_SERVER.test(code) && !code.startsWith("ERR_");
  return isOfClient || isOfNetwork || /Connection is closed|timed out/i.test(error.message)
    ? EXIT.unreachable
    : EXIT.internal;
}

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let one = error; one instanceof Error && chain.length < MOST_CAUSES; one = one.cause) chain.push(one);
  return chain;
}

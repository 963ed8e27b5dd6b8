/**
 * Describes holders and operators in a few words, as far as they are known. The result can contain hostile text, so
 * escape it before you print it.
 */
import { hostname, userInfo } from "node:os";
import type { Holder, WaitingClaim } from "holdfast";

/**
 * Names a holder or waiter for an operator: `ci-7/4211 api`; the client's id if its record is gone; or the value that a
 * foreign client wrote.
 */
export function whoIs({
  host,
  pid,
  clientName,
  owner,
}: Pick<Holder | WaitingClaim, "host" | "pid" | "clientName" | "owner">): string {
  if (host === undefined) return clientIdOf(owner) ?? owner;
  return `${host}/${pid ?? "?"}${clientName ? ` ${clientName}` : ""}`;
}

/** The client id in an owner id; undefined if the owner id is not from a Holdfast client. */
export function clientIdOf(owner: string): string | undefined {
  return /^([\w-]+)\/\d+\/\d+\/\d+(?:\/|$)/.exec(owner)?.[1];
}

/** The user who runs this command, for pauses and for the history: `ana@ops-1`. */
export function whoAmI(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return hostname(); // a container's user often has no name
  }
}

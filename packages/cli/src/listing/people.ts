/** Who somebody is, in few words, as far as it is known. What comes out may be hostile text: it is made visible where it is printed. */
import { hostname, userInfo } from "node:os";
import type { Holder, WaitingClaim } from "holdfast";

/** A claim as an operator wants to see it: `ci-7/4211 api`; the client's id if its record is gone; what a foreign client wrote. */
export function whoIs({
  host,
  pid,
  clientName,
  owner,
}: Pick<Holder | WaitingClaim, "host" | "pid" | "clientName" | "owner">): string {
  if (host === undefined) return clientIdOf(owner) ?? owner;
  return `${host}/${pid ?? "?"}${clientName ? ` ${clientName}` : ""}`;
}

/** The id of the client that made the owner id; undefined if another kind of client wrote it. */
export function clientIdOf(owner: string): string | undefined {
  return /^([\w-]+)\/\d+\/\d+\/\d+(?:\/|$)/.exec(owner)?.[1];
}

/** The person at this keyboard, for pauses and for the history: `ana@ops-1`. */
export function whoAmI(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return hostname(); // a container's user often has no name
  }
}

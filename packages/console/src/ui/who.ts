/** The names of clients. */
import type { HolderView } from "../api.js";
import { plain } from "../plain.js";

/**
 * A client: host, pid and app of its process, or at least its client id. A `clientId` of null: another library;
 * undefined: unknown.
 */
export type LockClient = Pick<HolderView, "host" | "pid" | "app"> & { readonly clientId: string | null | undefined };

/** `ci-7/4211 api`, as in the CLI. */
export function whoText({ host, pid, app, clientId }: LockClient): string {
  const id = clientId === undefined ? "unknown client" : (clientId ?? "not a Holdfast client");
  const process = host === null ? id : pid === null ? host : `${host}/${pid}`;
  return plain(app === null || app === "" ? process : `${process} ${app}`);
}

/** The client id in the owner id of a history entry, as in `LockClient`. */
export function clientIdIn(owner: string | null): string | null | undefined {
  return owner === null ? undefined : (/^([\w-]{16})\/\d+\/\d+\/\d+(?:\/|$)/.exec(owner)?.[1] ?? null);
}

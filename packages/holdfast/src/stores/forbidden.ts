/** A Redis user without permission to subscribe causes no error, because waiters then poll. So the operator gets a warning. */
import { missingPermission } from "./permission.js";

/** Warns once for each missing ACL rule and each sort of channel. There is one instance per store. */
export class ForbiddenChannels {
  readonly #told = new Set<string>();

  /** Warns if `cause` means that the user lacks a permission on `channel`. @returns the missing rule, if any */
  tell(cause: unknown, channel: string): string | undefined {
    const missing = missingPermission(cause, { channels: [channel] });
    // Channels of one sort differ only in the id or name after the second colon.
    const sort = missing?.replace(/^(&[^:]*:[^:]*:).*$/, "$1*");
    if (sort === undefined || this.#told.has(sort)) return missing;
    this.#told.add(sort);
    process.emitWarning(`Holdfast cannot subscribe as it should, because its Redis user lacks ${sort}.`, {
      type: "HoldfastWarning",
      code: "HOLDFAST_CHANNEL_FORBIDDEN",
      detail:
        "Waiters ask the server at intervals instead of being notified, so they are served late and out of order. Grant the right: " +
        `ACL SETUSER <user> ${sort}. docs/safety.md lists all rights that Holdfast needs.`,
    });
    return missing;
  }
}

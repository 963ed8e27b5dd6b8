/** A Redis user without permission to subscribe causes no error, because waiters then poll. So the operator gets a warning. */
import { missingPermission } from "./permission.js";

/** Warns once for each missing ACL rule and each sort of channel. There is one instance per store. */
export class ForbiddenChannels {
  readonly #warned = new Set<string>();

  /** Warns if `cause` means that the user lacks a permission on `channel`. @returns the missing rule, if any */
  warn(cause: unknown, channel: string): string | undefined {
    const missing = missingPermission(cause, { channels: [channel] });
    // Channels of one sort differ only in the id or name after the second colon.
    const sort = missing?.replace(/^(&[^:]*:[^:]*:).*$/, "$1*");
    if (sort === undefined || this.#warned.has(sort)) return missing;
    this.#warned.add(sort);
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

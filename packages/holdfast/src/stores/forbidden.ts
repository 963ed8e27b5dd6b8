/** A user without the right to subscribe causes no error, because waiters then ask at intervals. So the operator gets a warning. */
import { missingPermission } from "./permission.js";

/** Warns once for each rule that is missing and each sort of channel. One for each store. */
export class ForbiddenChannels {
  readonly #told = new Set<string>();

  /** Warns, if `cause` says that the user may not do what was asked about `channel`. @returns the rule that is missing */
  tell(cause: unknown, channel: string): string | undefined {
    const missing = missingPermission(cause, { channels: [channel] });
    // Channels of one sort differ by an id or a name behind the second colon.
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

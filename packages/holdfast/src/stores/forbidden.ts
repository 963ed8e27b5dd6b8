/** A server that forbids to listen stops nobody, since whoever cannot listen asks now and then; so the operator is told. */
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
    process.emitWarning(`Holdfast may not listen as it should, because its Redis user lacks ${sort}.`, {
      type: "HoldfastWarning",
      code: "HOLDFAST_CHANNEL_FORBIDDEN",
      detail:
        "Whoever waits asks now and then in place of being told, and is served late and out of turn. Permit it: " +
        `ACL SETUSER <user> ${sort}. docs/safety.md lists all that Holdfast needs.`,
    });
    return missing;
  }
}

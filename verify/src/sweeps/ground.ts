/** The grounds of guarantees, and so which faults suspend them; the same for all types of runs. */

/**
 * Exclusion depends on the server's memory and clock, tokens on its counter or clock, effects on a resource that
 * checks tokens.
 */
export type Ground = "exclusion" | "tokens" | "effects";

/**
 * The ground that a property depends on; undefined if no fault excuses a violation.
 *
 * Reporting losses (S4), basing successes on replies (S5) and keeping a handle's token (F3) depend only on the
 * client. Liveness has no ground here, because each sweep knows what delays it and until when.
 */
export function groundOf(property: string): Ground | undefined {
  if (property === "S4" || property === "S5" || property === "F3") return undefined;
  if (/^[SX]/.test(property)) return "exclusion";
  if (property === "F5" || property === "E1") return "effects";
  return property.startsWith("F") ? "tokens" : undefined;
}

/** What a property stands on, and so which faults take the promise of it away: the same rule for every sort of run. */

/** Exclusion needs the server's memory and its clock; tokens need its counter or its clock; effects need a resource that looks at tokens. */
export type Ground = "exclusion" | "tokens" | "effects";

/**
 * What has to be given for that property to be promised; undefined for one that no fault excuses.
 *
 * That a loss is told (S4), that no success is made up (S5) and that a handle keeps its token (F3) are the client's own
 * doing. Liveness has no ground here: each sweep knows what hinders it, and until when.
 */
export function groundOf(property: string): Ground | undefined {
  if (property === "S4" || property === "S5" || property === "F3") return undefined;
  if (/^[SX]/.test(property)) return "exclusion";
  if (property === "F5" || property === "E1") return "effects";
  return property.startsWith("F") ? "tokens" : undefined;
}

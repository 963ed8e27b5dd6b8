import { groupBy, type History } from "../history/history.js";
import type { Effect } from "../history/records.js";
import { Findings, type SweepResult } from "./result.js";

/** F5: after accepting a token, the protected resource accepts no lower one. */
export function guardedTokens(history: History): SweepResult {
  const findings = new Findings("F5");
  for (const [resource, effects] of acceptedByResource(history)) {
    let highest: Effect | undefined;
    for (const effect of effects) {
      if (effect.token === null) continue;
      const { token } = effect;
      const bound = highest?.token ?? token;
      const message = token < bound ? `"${resource}" accepted token ${token} after ${bound}` : undefined;
      findings.decide(resource, highest === undefined ? [effect] : [highest, effect], message);
      if (highest === undefined || token > bound) highest = effect;
    }
  }
  return findings.result();
}

/**
 * E1: accepted effects of different holders never interleave, and no acknowledged effect is missing at the end.
 *
 * Holders are distinguished by lease, not by token, so the same check judges a run without tokens, which is its
 * control.
 */
export function untornEffects(history: History): SweepResult {
  const findings = new Findings("E1");
  const finals = new Map(history.finalStates.map(({ resource, values }) => [resource, new Set(values)]));
  for (const [resource, effects] of acceptedByResource(history)) {
    const lastOf = new Map<number, Effect>();
    let previous: Effect | undefined;
    for (const effect of effects) {
      const own = lastOf.get(effect.leaseId);
      const isTorn = own !== undefined && previous !== undefined && previous.leaseId !== effect.leaseId;
      findings.decide(
        resource,
        isTorn ? [own, previous as Effect, effect] : [effect],
        isTorn ? `"${resource}" took an effect of ${previous?.process} between two of ${effect.process}` : undefined,
      );
      lastOf.set(effect.leaseId, effect);
      previous = effect;
    }
    const final = finals.get(resource);
    if (final === undefined) continue;
    for (const effect of effects.filter(({ isAcknowledged }) => isAcknowledged))
      findings.decide(
        resource,
        [effect],
        final.has(effect.value) ? undefined : `"${resource}" lost ${effect.value}, which it had acknowledged`,
      );
  }
  return findings.result();
}

function acceptedByResource(history: History): Map<string, Effect[]> {
  const accepted = history.effects.filter(({ isAccepted }) => isAccepted).sort((a, b) => a.sequence - b.sequence);
  return groupBy(accepted, ({ resource }) => resource);
}

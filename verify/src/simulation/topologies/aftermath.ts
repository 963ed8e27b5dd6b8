/** Judges a run on several servers by its records, with the sweeps that apply there. */
import type { History } from "../../history/index.js";
import {
  exactTokens,
  guardedTokens,
  leaseExclusion,
  loudLoss,
  risingTokens,
  type SweepResult,
  settledWaits,
  steadyTokens,
  uniqueTokens,
  untornEffects,
} from "../../sweeps/index.js";
import { sharing } from "../aftermath.js";
import { settleMs } from "../calling.js";
import { cutAt } from "../cut.js";
import type { Finding } from "../finding.js";
import type { Judge } from "../judge.js";
import { PERMITS } from "../kinds/semaphore.js";
import type { TopologyPlan } from "./plan.js";

/** How late a lost lease is reported by a timer: whole milliseconds of its clock on an idle event loop. */
const TIMER_MS = 4.1;
/** How late a lost lease is noticed by polling, if the clocks of a process have diverged. */
const LOOK_MS = 1_020;

/** @returns the violations, and the number of decided cases for each property */
export function judgeTopology(
  history: History,
  judge: Judge,
  plan: TopologyPlan,
): { readonly found: Finding[]; readonly checked: ReadonlyMap<string, number> } {
  const results = [...sweeps(history, judge, plan)];
  const found = results.flatMap(({ property, violations }) =>
    violations.map(({ message, name, records }) => ({ property, name, text: message, atMs: plan.calmFromMs, records })),
  );
  return { found, checked: new Map(results.map(({ property, figures }) => [property, figures.checked ?? 0])) };
}

function* sweeps(history: History, judge: Judge, plan: TopologyPlan): Generator<SweepResult> {
  const tokens = cutAt(history, judge.lostAt("tokens"));
  const isParted = plan.strikes.some((strike) => strike.what === "freeze" && strike.suspended);
  const exclusive = cutAt(history, judge.lostAt("exclusion"));
  yield leaseExclusion(exclusive);
  yield* sharing(plan.kind, exclusive, PERMITS);
  // From then on there may be two holders, and only one of them is watched.
  yield loudLoss(exclusive, { marginMs: 0, epsMs: isParted ? LOOK_MS : TIMER_MS });
  yield uniqueTokens(tokens);
  yield risingTokens(tokens);
  yield steadyTokens(history);
  yield exactTokens(history);
  yield guardedTokens(tokens);
  yield untornEffects(tokens);
  const killed = new Set(history.faults.flatMap(({ id, target }) => (id.startsWith("kill-") ? [target] : [])));
  const operations = history.operations.filter(
    ({ returnMs, process }) => Number.isFinite(returnMs) || !killed.has(process),
  );
  yield settledWaits({ ...history, operations }, { epsMs: settleMs(plan) * 1.01, rho: 0.01 });
}

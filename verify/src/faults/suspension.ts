/**
 * J07: a suspended host stops its monotonic clock, which a test cannot do to a real host. So these cells run in the
 * simulation, with seeds whose plan suspends a host during one of its sessions.
 */
import { type FaultEvent, type Plan, planOf, type Session } from "../simulation/plan.js";
import { runPlan } from "../simulation/run.js";
import type { Letter } from "./cell.js";
import type { Ran, RunSettings } from "./run.js";
import type { Breach } from "./verdict.js";

/** The kind in the simulation for each letter. All mutexes there are fair and have tokens. */
const KIND_OF: Readonly<Record<Letter, string>> = {
  m: "mutex",
  r: "reentrant-mutex",
  w: "read-write-lock",
  s: "semaphore",
  f: "mutex",
  k: "multi-lock",
  t: "mutex",
  a: "mutex",
  l: "count-down-latch",
  e: "election",
  b: "barrier",
  c: "condition",
};
const MOST_BREACHES = 3;

/** Runs one cell in the simulation, for as long as a run on servers would inject faults. */
export async function runSuspended({ cell, seed, subject, lastsMs }: RunSettings): Promise<Ran> {
  const beganMs = performance.now();
  const kind = KIND_OF[cell.letter];
  const breaches: Breach[] = [];
  const totals = { seeds: 0, grants: 0, events: 0, suspensions: 0 };
  // Far apart, so that rounds do not play the same plans again.
  let planSeed = seed * 1_000_000;
  while (performance.now() - beganMs < lastsMs && breaches.length < MOST_BREACHES) {
    planSeed += 1;
    const plan = planOf(planSeed, kind, "promised");
    const struck = plan.faults.filter((fault) => isFelt(plan, fault));
    if (struck.length === 0 || (cell.letter === "a" && !plan.sessions.some(({ renew }) => renew))) continue;
    const { violations, grantCount, eventCount } = await runPlan(plan);
    totals.seeds += 1;
    totals.grants += grantCount;
    totals.events += eventCount;
    totals.suspensions += struck.length;
    for (const { property, atMs, text } of violations) {
      const replay = `node verify/dist/simulation/main.js --seed ${planSeed} --kind ${kind} --profile promised`;
      breaches.push({ property, lockName: kind, message: `${text} (at ${atMs.toFixed(1)} ms; ${replay})` });
    }
  }
  const isVoid = totals.suspensions === 0 || totals.grants === 0;
  return {
    verdict: {
      cell,
      seed,
      subject,
      outcome: breaches.length > 0 ? "violation" : isVoid ? "void" : "ok",
      operations: totals.grants,
      faults: totals.suspensions,
      tookMs: performance.now() - beganMs,
      breaches,
      // Every grant is checked against every property of the simulation.
      checked: { simulated: totals.grants },
      notes: [`${totals.seeds} simulated runs of ${kind} with ${totals.events} events; each suspends a host at work`],
    },
    records: [],
  };
}

function isFelt(plan: Plan, fault: FaultEvent): boolean {
  if (fault.what !== "freeze" || !fault.suspended) return false;
  return plan.sessions.some((session) => isUnderWay(session, fault));
}

/** Whether the session has begun, and holds long enough that it cannot have ended. */
function isUnderWay({ process, atMs, holdMs }: Session, fault: FaultEvent): boolean {
  return process === fault.process && atMs <= fault.atMs && fault.atMs <= atMs + holdMs;
}

/** Checks whether the clocks of the servers are reliable. */
import { type Check, found, ok, type Severity, unknown, type Verdict } from "../check.js";
import type { ClockFacts, NodeFacts } from "../facts.js";
import { fixFor, millis } from "../words.js";

/** Reports clocks that differ. */
export const clockSkew: Check = {
  id: "clock-skew",
  reads: "how far each node's TIME differs from this machine's clock",
  levels:
    "warning if a node's clock differs by over 250 ms from this machine's, or by over 100 ms from another node's; critical if it differs by over 2 s from another node's",
  risk: "The server's wall clock decides when leases expire. If a replica with a wrong clock is promoted, leases end early or late, and tokens may stop rising.",
  fix: "run NTP (chrony) on every machine, and configure it to slew the clock instead of stepping it",
  families: ["clock"],
  run(facts, { nodes }) {
    const { clock } = facts;
    if (clock === undefined)
      return unknown(
        `the clock could not be read (${facts.hidden.get("clock") ?? "no reply to TIME"})`,
        fixFor(facts.hidden.get("clock"), "grant TIME to this user"),
      );
    const verdicts: Verdict[] = [];
    const fromUs = certainPart(clock.offsetMs, clock.uncertaintyMs);
    if (fromUs > 250) {
      verdicts.push(
        ...found(
          "warning",
          `${aside(clock.offsetMs)} this machine's clock (give or take ${millis(clock.uncertaintyMs)})`,
          {
            risk: "Locks do not depend on it, because each side uses its own clock. But if the server's clock is wrong, its next correction may end leases early or late.",
          },
        ),
      );
    }
    const worst = worstPair(facts, clock, nodes);
    if (worst !== undefined) verdicts.push(...found(worst.severity, worst.measured));
    return verdicts.length > 0 ? verdicts : ok(`${aside(clock.offsetMs)} this machine's clock`);
  },
};

/** The part of a difference that remains after subtracting the largest possible measurement error. */
function certainPart(differenceMs: number, uncertaintyMs: number): number {
  return Math.max(0, Math.abs(differenceMs) - uncertaintyMs);
}

function aside(offsetMs: number): string {
  return `${millis(Math.abs(offsetMs))} ${offsetMs < 0 ? "behind" : "ahead of"}`;
}

/** Compares only with nodes that are listed earlier, so that each pair is compared once. */
function worstPair(
  facts: NodeFacts,
  clock: ClockFacts,
  nodes: readonly NodeFacts[],
): { severity: Severity; measured: string } | undefined {
  let worstMs = 100;
  let worst: { severity: Severity; measured: string } | undefined;
  for (const other of nodes.slice(0, nodes.indexOf(facts))) {
    if (other.clock === undefined) continue;
    const differenceMs = clock.offsetMs - other.clock.offsetMs;
    const sureMs = certainPart(differenceMs, clock.uncertaintyMs + other.clock.uncertaintyMs);
    if (sureMs <= worstMs) continue;
    worstMs = sureMs;
    worst = {
      severity: sureMs > 2_000 ? "critical" : "warning",
      measured: `${aside(differenceMs)} the clock of ${other.node}`,
    };
  }
  return worst;
}

/** Reports a clock that stands still or goes backward. */
export const clockRuns: Check = {
  id: "clock-runs",
  reads: "the server's TIME twice, 200 ms apart",
  levels: "critical if the clock stands still or goes backward",
  risk: "Leases never end, or end immediately. A crashed client may hold its lock forever.",
  fix: "restart the node, and fix its machine's clock source",
  families: ["clock"],
  run({ clock, hidden }) {
    if (clock === undefined)
      return unknown(
        `the clock could not be read (${hidden.get("clock") ?? "no reply to TIME"})`,
        fixFor(hidden.get("clock"), "grant TIME to this user"),
      );
    const measured = `${millis(clock.serverRanMs)} passed on the server's clock while ${millis(clock.clientRanMs)} passed here`;
    return clock.serverRanMs <= 0 ? found("critical", measured) : ok(measured);
  },
};

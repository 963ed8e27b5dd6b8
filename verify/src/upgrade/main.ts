/** npm run verify:upgrade: two versions of the library on one server. For its options, see options.ts. */
import { writeFileSync } from "node:fs";
import { argv, exit } from "node:process";
import { unpackBuilds } from "./builds.js";
import { compare, longestMs, type Verdict } from "./judge.js";
import { HELP, type Options, optionsOf } from "./options.js";
import { PHASES, type Phase, type Played, play } from "./phase.js";

/** The maximum number of violations shown per phase. */
const SHOWN = 10;
/** A phase with both builds needs at least this many grants in each direction to be meaningful. */
const FEWEST = 5;

/** Descriptions of the failures of a phase. */
function complaints(phase: Phase, { verdict, crashes, kills, workers }: Played, alone: readonly Verdict[]): string[] {
  const found = [...verdict.violations, ...crashes];
  if (verdict.grants === 0) found.push("nothing was granted: the phase shows nothing");
  if (alone.length < 2) return found;
  const { oldToNew, newToOld } = verdict.handedOver;
  if (Math.min(oldToNew, newToOld) < FEWEST) {
    found.push(
      `too few hand-overs between the builds to show anything: ${oldToNew} to the new one, ${newToOld} to the old one`,
    );
  }
  // A worker with long sections gets fewer of them, and a replaced worker has no comparable share.
  const isEven = !phase.isRolling && phase.crew.every(({ longShare }) => longShare === phase.crew[0]?.longShare);
  return [...found, ...compare(verdict, alone, isEven ? workers : undefined, kills > 0)];
}

function shown(phase: Phase, { verdict, kills }: Played): string {
  const { grants, timeouts, lost, handedOver, fares } = verdict;
  const lines = [
    `${phase.name}: ${grants} grants, ${handedOver.oldToNew} from old to new, ${handedOver.newToOld} from new to old, ` +
      `${timeouts} time-outs, ${kills} kills, lost: ${JSON.stringify(lost)}`,
  ];
  for (const [name, both] of fares) {
    const parts = (["old", "new"] as const)
      .filter((build) => both[build].grants > 0)
      .map((build) => {
        const { grants: had, longestMs: longest, waitsMs } = both[build];
        const sorted = waitsMs.toSorted((a, b) => a - b);
        const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0;
        return `${build} ${had} grants, p99 ${Math.round(p99)} ms, longest ${Math.round(longest)} ms`;
      });
    lines.push(`  ${name.padEnd(7)} ${parts.join("; ")}`);
  }
  return lines.join("\n");
}

async function run(options: Options): Promise<number> {
  const builds = await unpackBuilds();
  const alone: Verdict[] = [];
  const rows: string[][] = [];
  const beganAtMs = performance.now();
  let failed = 0;
  try {
    for (const [i, phase] of PHASES.entries()) {
      const played = await play(phase, i, builds, options);
      const found = complaints(phase, played, alone);
      if (alone.length < 2) alone.push(played.verdict);
      console.log(shown(phase, played));
      for (const complaint of found.slice(0, SHOWN)) console.log(`  FAILED: ${complaint}`);
      if (found.length > SHOWN) console.log(`  FAILED: and ${found.length - SHOWN} more`);
      if (found.length > 0) failed += 1;
      const { verdict } = played;
      const longest = Math.max(...[...verdict.fares.keys()].map((name) => longestMs(verdict, name)));
      rows.push([phase.name, String(verdict.grants), String(Math.round(longest)), String(found.length)]);
    }
  } finally {
    await builds.remove();
  }
  const passed = PHASES.length - failed;
  if (options.json !== undefined) {
    const { seconds, seed } = options;
    const tookMs = Math.round(performance.now() - beganAtMs);
    const columns = ["phase", "grants", "longest wait, ms", "failures"];
    const result = { part: "upgrade", title: "Two versions on one server", passed, failed, tookMs };
    writeFileSync(options.json, JSON.stringify({ ...result, facts: { seconds, seed }, columns, rows }));
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

const options = optionsOf(argv.slice(2));
if (options === "help") {
  console.log(HELP);
  exit(0);
}
exit(await run(options));

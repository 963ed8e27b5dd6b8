/** npm run bench: us beside the others, in one run on one machine. Ratios are the result; absolute numbers are context. */
import { type Arguments, parseArguments, USAGE } from "./arguments.js";
import { type Comparison, compare } from "./compare.js";
import { machine } from "./machine.js";
import { contestantOf, heading, type Report, sentence, table } from "./report.js";
import { startServer } from "./server.js";

const LEASE_MS = 30_000;

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

try {
  const wanted = parseArguments(process.argv.slice(2));
  if (wanted.help) console.log(USAGE);
  else await measure(wanted);
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}

async function measure(wanted: Arguments): Promise<void> {
  const { adapters, measurements, json, repetitions, callers, leases, waiters, autoPipelining } = wanted;
  const server = await startServer();
  try {
    const connection = { port: server.port, autoPipelining, leaseMs: LEASE_MS };
    const conditions = { server, connection, repetitions, callers, leases, waiters };
    const facts = {
      machine: machine(server.version),
      contestants: adapters.map(contestantOf),
      ...{ repetitions, callers, waiters, leases, leaseMs: LEASE_MS, autoPipelining },
    };
    const comparisons: Comparison[] = [];
    if (!json) console.log(heading({ reached: true, ...facts }));
    for (const [index, measurement] of measurements.entries()) {
      const onRun = (entry: string, repetition: number): void => {
        const turn = repetition === 0 ? "warm-up" : `${repetition}/${repetitions}`;
        progress(`[${index + 1}/${measurements.length}] ${measurement.name}: ${entry} ${turn}`);
      };
      await server.control.flushall();
      const seconds = wanted.seconds ?? measurement.seconds;
      const comparison = await compare(measurement, adapters, { ...conditions, seconds }, onRun);
      progress("");
      comparisons.push(comparison);
      if (!json) console.log(table(comparison));
    }
    const targets = comparisons.flatMap((comparison) => comparison.targets);
    const report: Report = { reached: targets.every(({ reached }) => reached !== false), ...facts, comparisons };
    if (json) {
      // What was drawn of is not what was measured.
      console.log(JSON.stringify(report, (key, value: unknown) => (key === "sections" ? undefined : value)));
      if (!report.reached) process.exitCode = 1;
    } else {
      console.log(`\n${targets.map(sentence).join("\n")}`);
    }
  } finally {
    await server.stop();
  }
}

/** One line that is written over, and only where somebody watches. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

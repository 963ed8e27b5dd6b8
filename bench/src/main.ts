/** npm run bench: compares Holdfast with other libraries in one run on one machine. The ratios are the result. */
import { type Arguments, parseArguments, USAGE } from "./arguments.js";
import { type Comparison, compare } from "./compare.js";
import { curveText, type MeasuredCurve } from "./curves/report.js";
import { withoutSections, writeCurves, writeMoments, writeProfiles, writeReport } from "./documents/write.js";
import { machine } from "./machine.js";
import type { Conditions } from "./measurements/entry.js";
import { measureMoments } from "./moments/measure.js";
import { momentsText } from "./moments/report.js";
import { profileText } from "./profiles/report.js";
import { profileAll } from "./profiles/run.js";
import { contestantOf, environment, heading, type Report, sentence, table } from "./report.js";
import { type Server, startServer, startServers, stopAll } from "./server.js";
import { measureTimeouts } from "./timeouts/measure.js";
import { isReached, timeoutsText } from "./timeouts/report.js";

const LEASE_MS = 30_000;
/** Callers whose waits end together. */
const TIMED_OUT = 5_000;
const MISSED = 1;
const FAILED = 2;

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

try {
  const wanted = parseArguments(process.argv.slice(2));
  if (wanted.help) console.log(USAGE);
  else await run(wanted);
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = FAILED;
}

async function run(wanted: Arguments): Promise<void> {
  const server = await startServer();
  try {
    if (wanted.curves.length > 0) await drawCurves(wanted, server);
    else if (wanted.profiles.length > 0) await profile(wanted, server);
    else if (wanted.moments) await followHandOvers(wanted, server);
    else if (wanted.timeouts) await timeOut(wanted, server);
    else await measure(wanted, server);
  } finally {
    await server.stop();
  }
}

async function measure(wanted: Arguments, server: Server): Promise<void> {
  const { adapters, measurements, json, repetitions, callers, leases, waiters, autoPipelining } = wanted;
  const facts = {
    machine: machine(server),
    contestants: adapters.map(contestantOf),
    ...{ repetitions, callers, waiters, leases, leaseMs: LEASE_MS, autoPipelining },
  };
  const comparisons: Comparison[] = [];
  if (!json) console.log(heading(facts));
  for (const [index, measurement] of measurements.entries()) {
    const onRun = (entry: string, repetition: number): void => {
      const turn = repetition === 0 ? "warm-up" : `${repetition}/${repetitions}`;
      progress(`[${index + 1}/${measurements.length}] ${measurement.name}: ${entry} ${turn}`);
    };
    await server.control.flushall();
    const seconds = wanted.seconds ?? measurement.seconds;
    const servers = await startServers(measurement.servers ?? 0);
    try {
      const conditions = { ...conditionsOf(wanted, server), servers, seconds };
      const comparison = await compare(measurement, adapters, conditions, onRun);
      progress("");
      comparisons.push(comparison);
      if (!json) console.log(table(comparison));
    } finally {
      await stopAll(servers);
    }
  }
  const targets = comparisons.flatMap((comparison) => comparison.targets);
  const report: Report = { reached: targets.every(({ reached }) => reached !== false), ...facts, comparisons };
  if (json) {
    console.log(JSON.stringify(report, withoutSections));
    if (!report.reached) process.exitCode = MISSED;
  } else console.log(`\n${targets.map(sentence).join("\n")}`);
  if (wanted.writeDocs) writeReport(wanted.docsFolder, report);
}

async function drawCurves(wanted: Arguments, server: Server): Promise<void> {
  const { repetitions, autoPipelining } = wanted;
  const facts = machine(server);
  const conditions = { machine: facts, autoPipelining, leaseMs: LEASE_MS, repetitions };
  const curves: MeasuredCurve[] = [];
  for (const { seconds, measure } of wanted.curves) {
    await server.control.flushall();
    const own = { ...conditionsOf(wanted, server), seconds: wanted.seconds ?? seconds };
    curves.push({ ...(await measure(own, facts.cores, progress)), conditions });
  }
  progress("");
  const report = { curves };
  if (wanted.json) console.log(JSON.stringify(report));
  else console.log([...environment(facts, autoPipelining, LEASE_MS), ...curves.map(curveText)].join("\n"));
  if (wanted.writeDocs) writeCurves(wanted.docsFolder, report);
}

async function profile(wanted: Arguments, server: Server): Promise<void> {
  const facts = machine(server);
  const tables = await profileAll(wanted.profiles, conditionsOf(wanted, server), wanted.seconds, progress);
  progress("");
  const report = { machine: facts, autoPipelining: wanted.autoPipelining, leaseMs: LEASE_MS, tables };
  if (wanted.json) console.log(JSON.stringify(report));
  else console.log([...environment(facts, wanted.autoPipelining, LEASE_MS), ...tables.map(profileText)].join("\n"));
  if (wanted.writeDocs) writeProfiles(wanted.docsFolder, report);
}

async function followHandOvers(wanted: Arguments, server: Server): Promise<void> {
  const { autoPipelining } = wanted;
  const facts = machine(server);
  const lines = await measureMoments(conditionsOf(wanted, server), wanted.seconds, progress);
  progress("");
  if (wanted.json) console.log(JSON.stringify({ machine: facts, autoPipelining, leaseMs: LEASE_MS, lines }));
  else console.log([...environment(facts, autoPipelining, LEASE_MS), momentsText(lines)].join("\n"));
  if (wanted.writeDocs) writeMoments(wanted.docsFolder, { machine: facts, autoPipelining, leaseMs: LEASE_MS, lines });
}

async function timeOut(wanted: Arguments, server: Server): Promise<void> {
  const facts = machine(server);
  const lines = await measureTimeouts(conditionsOf(wanted, server), TIMED_OUT, progress);
  progress("");
  if (wanted.json) console.log(JSON.stringify({ machine: facts, lines }));
  else console.log([...environment(facts, false, LEASE_MS), timeoutsText(lines)].join("\n"));
  if (!lines.every(isReached)) process.exitCode = MISSED;
}

function conditionsOf(wanted: Arguments, server: Server): Omit<Conditions, "seconds"> {
  const { repetitions, callers, leases, waiters, autoPipelining } = wanted;
  const connection = { port: server.port, autoPipelining, leaseMs: LEASE_MS };
  return { server, servers: [], connection, repetitions, callers, leases, waiters };
}

/** Writes a line over the previous one, and only to a terminal. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** npm run bench: us beside the others, in one run on one machine. Ratios are the result; absolute numbers are context. */
import { type Arguments, parseArguments, USAGE } from "./arguments.js";
import { type Comparison, compare } from "./compare.js";
import { machine } from "./machine.js";
import { heading, table } from "./report.js";
import { startServer } from "./server.js";

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

try {
  const wanted = parseArguments(process.argv.slice(2));
  if (wanted.help) console.log(USAGE);
  else await measure(wanted);
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function measure(wanted: Arguments): Promise<void> {
  const { adapters, measurements, json, seconds, repetitions, callers, autoPipelining } = wanted;
  const server = await startServer();
  try {
    const connection = { port: server.port, autoPipelining };
    const conditions = { server, connection, seconds, callers, repetitions };
    const facts = machine(server.version);
    const comparisons: Comparison[] = [];
    if (!json) console.log(heading(facts, adapters, autoPipelining));
    for (const measurement of measurements) {
      const onRun = (contestant: string, repetition: number): void =>
        progress(`${measurement.name}: ${contestant} ${repetition === 0 ? "warm-up" : `${repetition}/${repetitions}`}`);
      const comparison = await compare(measurement, adapters, conditions, onRun);
      progress("");
      comparisons.push(comparison);
      if (!json) console.log(table(comparison, adapters[0]?.name ?? ""));
    }
    const versions = Object.fromEntries(adapters.map(({ name, version }) => [name, version]));
    if (json)
      console.log(
        JSON.stringify({ machine: facts, versions, seconds, repetitions, callers, autoPipelining, comparisons }),
      );
  } finally {
    await server.stop();
  }
}

/** One line that is written over, and only where somebody watches. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

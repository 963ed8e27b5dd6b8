/**
 * The command `npm run demo`: two hundred payments, impatient customers, and the effect of an Idempotency-Key.
 *
 * README.md in this folder explains the output.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { ArgumentError, type DemoArguments, HELP, readArguments } from "./arguments.js";
import { copiesInProcess, copiesInProcesses, type StartCopies } from "./copies.js";
import { whyRedisIsUnusable } from "./redis-check.js";
import { runDemo } from "./run-demo.js";
import { generateSubmissions, parseSubmissions, type Submission, SubmissionsError } from "./submissions.js";

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  try {
    const chosen = readArguments(args);
    if (chosen === "help") {
      console.log(HELP);
      return 0;
    }
    return await demo(chosen);
  } catch (error) {
    if (!(error instanceof ArgumentError || error instanceof SubmissionsError)) throw error;
    console.error(`demo: ${error.message}${error instanceof ArgumentError ? " (see --help)" : ""}`);
    return 2;
  }
}

async function demo({ redisUrl, copies, load }: DemoArguments): Promise<number> {
  const { submissions, origin } = readLoad(load);
  const unusable = redisUrl === undefined ? null : await whyRedisIsUnusable(redisUrl);
  if (unusable !== null) {
    console.error(`demo: ${unusable}`);
    return 1;
  }
  const directory = mkdtempSync(join(tmpdir(), "holdfast-orders-"));
  const backing = redisUrl === undefined ? onEmbedded(copies) : onRedis(copies, redisUrl, basename(directory));

  const copiesOf = `${copies} ${copies === 1 ? "copy" : "copies"} of an order service, ${backing.where}`;
  console.log(`${copiesOf}; ${submissions.length} submissions ${origin}.`);
  console.log("Impatient customers refresh the waiting page, and each refresh reaches some copy.\n");
  try {
    const { faults, summary } = await runDemo({ submissions, ...backing, directory, output: process.stdout });
    for (const fault of faults) console.error(`demo: ${fault}`);
    console.log(`\n${summary}`);
    return faults.length === 0 ? 0 : 1;
  } finally {
    await backing.close();
  }
}

function readLoad(load: DemoArguments["load"]): { submissions: Submission[]; origin: string } {
  if ("seed" in load) {
    return { submissions: generateSubmissions(load.seed, load.payments), origin: `made from seed ${load.seed}` };
  }
  // The compiled file is in examples/dist/orders, the load in examples/orders.
  const file = load.file ?? fileURLToPath(new URL("../../orders/submissions.csv", import.meta.url));
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new ArgumentError(`cannot read the submissions: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { submissions: parseSubmissions(text, basename(file)), origin: `from ${basename(file)}` };
}

/** The copies, and a Holdfast of the demo on the same server. */
interface Backing {
  readonly where: string;
  readonly startCopies: StartCopies;
  readonly holdfast: Holdfast;
  close(): Promise<void>;
}

function onEmbedded(copies: number): Backing {
  const holdfast = createHoldfast({ store: embedded({ keyspace: new Keyspace() }), clientName: "orders demo" });
  return {
    where: "all in this process on the embedded store",
    startCopies: copiesInProcess(copies),
    holdfast,
    async close() {
      await holdfast.close();
    },
  };
}

function onRedis(copies: number, url: string, prefix: string): Backing {
  const redis = new Redis(url);
  redis.on("error", (error: Error) => console.error(`demo: Redis: ${error.message}`));
  const holdfast = createHoldfast({ redis, prefix, clientName: "orders demo" });
  return {
    where: `each a process of its own, on Redis at ${new URL(url).host}`,
    startCopies: copiesInProcesses(copies, url, prefix),
    holdfast,
    async close() {
      await holdfast.close();
      redis.disconnect();
    },
  };
}

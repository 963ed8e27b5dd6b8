/** `holdfast demo`: shows locks at work, on an embedded store or on a Redis server. */
import { createHoldfast, type Holdfast, type Store } from "holdfast";
import { givePrefixBack, removeKeys, takePrefix } from "../demo/leftovers.js";
import { type Play, type PlaySummary, play } from "../demo/play.js";
import { hireHere, hireProcesses, PREFIX } from "../demo/staff.js";
import { openWindow } from "../demo/window.js";
import { WORKER_VARIABLE, workForParent } from "../demo/worker-process.js";
import { openBrowser } from "../frame/browser.js";
import { CliError, EXIT, usageError } from "../frame/exit-codes.js";
import { jsonLine, notify } from "../frame/output.js";
import { durationOf, isGiven, textsOf, wholeOf } from "../frame/values.js";
import type { Call, Connection, Verb } from "../frame/verb.js";
import { onlyNative } from "../listing/native.js";
import { listenForSignals } from "../live/interruption.js";

const HELP = `
Workers settle payments that must be settled once, for customers who press
the button again: first without a lock, then with a mutex for each payment, a
semaphore for the gateway and an election for the feed. One worker is killed
with -9 in the middle of a payment, and another one finishes it. The console
shows it live: its address is printed, and opened on a terminal.

      --workers N         4; 1 to 50
      --for D             60s; at least 5s
      --chaos             kill a worker every few seconds
      --open              open the console in a browser (default on a
                          terminal)
      --no-open           open no browser

Without -r it runs in this process on an embedded store and needs no Redis
(it ignores HOLDFAST_REDIS and REDIS_URL). With -r each worker is a process,
and all keys begin with ${PREFIX}: and are removed at the end. Watch them with:
holdfast ls -r URL --prefix ${PREFIX} --watch

Exit code 0; 1 if ${PREFIX} is in use, or if a payment was settled twice or
never.`;

/** Extra lifetime of the marker, for processes that start late and for the cleanup at the end. */
const MARKER_SPARE_MS = 600_000;

/** The verb `demo`. */
export const demo: Verb = {
  name: "demo",
  usage: "holdfast demo [-r URL] [--workers N] [--for D] [--chaos] [--no-open]",
  help: HELP,
  options: {
    workers: { type: "string" },
    for: { type: "string" },
    chaos: { type: "boolean" },
    open: { type: "boolean" },
    "no-open": { type: "boolean" },
  },
  async run(call) {
    const { values, common } = call;
    if (call.streams.env[WORKER_VARIABLE] === "1" && process.send !== undefined) return await workForParent();
    onlyNative("demo", common);
    if (call.positionals.length > 0) throw usageError(`demo takes no name; got "${call.positionals[0]}"`);
    if (common.topology === "redlock") throw usageError("demo shows kinds that --redlock does not have: leave it out");
    if (isGiven(values, "open") && isGiven(values, "no-open"))
      throw usageError("--open and --no-open cannot be combined");
    const workers = wholeOf(values, "workers", { min: 1, max: 50 }) ?? 4;
    const forMs = durationOf(values, "for", { minMs: 5_000, maxMs: 86_400_000 }) ?? 60_000;
    const interruption = listenForSignals();
    const facts = {
      workers,
      forMs,
      isChaos: isGiven(values, "chaos"),
      say: storyteller(call),
      signal: interruption.signal,
    };
    try {
      const summary =
        textsOf(values, "redis").length === 0 ? await playHere(call, facts) : await playOnRedis(call, facts);
      return report(call, workers, summary, interruption.signalCode());
    } finally {
      interruption.stop();
    }
  },
};

/** Returns a function that prints the story on stdout. With `--json` on stderr, because stdout is for the summary. */
function storyteller({ streams, common }: Call): (line: string) => void {
  if (common.isQuiet) return () => {};
  const out = common.isJson ? streams.stderr : streams.stdout;
  return (line) => void out.write(`${line}\n`);
}

async function playHere(call: Call, facts: Omit<Play, "hire">): Promise<PlaySummary> {
  // Imported on demand, because it is a separate package that is not needed with a Redis server.
  const { embedded, Keyspace } = await import("@holdfast/embedded");
  const keyspace = new Keyspace();
  const openStore = (): Store => embedded({ keyspace });
  facts.say("In this process, on the embedded store: nothing is installed, and no Redis is used.");
  const holdfast = createHoldfast({ store: openStore(), prefix: PREFIX, clientName: "console" });
  return await watched(call, holdfast, { address: "the embedded store" }, () =>
    play({ ...facts, hire: (shop, withLock) => hireHere(openStore, shop, withLock) }),
  );
}

/** Plays the demo and shows it in the console. There is no console with `--json` or `--quiet`. */
async function watched(
  { common, streams, values }: Call,
  holdfast: Holdfast,
  place: Parameters<typeof openWindow>[1],
  playing: () => Promise<PlaySummary>,
): Promise<PlaySummary> {
  const isRead = !common.isJson && !common.isQuiet;
  const window = isRead ? await openWindow(holdfast, place) : undefined;
  if (window !== undefined) {
    streams.stdout.write(`The console, meanwhile: ${window.url}\n`);
    const isWished = isGiven(values, "open") || (streams.stdout.isTTY === true && !isGiven(values, "no-open"));
    if (isWished) openBrowser(window.url);
  }
  try {
    return await playing();
  } finally {
    await window?.close();
    await holdfast.close();
  }
}

async function playOnRedis(call: Call, facts: Omit<Play, "hire">): Promise<PlaySummary> {
  const { common, connect, streams } = call;
  const connection: Connection = await connect({ signal: facts.signal });
  try {
    const [client] = connection.clients;
    if (client === undefined) throw new TypeError("no client");
    if (!(await takePrefix(client, connection.nodes(), 2 * facts.forMs + MARKER_SPARE_MS))) {
      throw new CliError(
        EXIT.no,
        `another demo is running on ${connection.address}, or one was killed. Nothing was changed. If none is running, delete its keys, which begin with ${PREFIX}:`,
      );
    }
    facts.say(`Each worker is a process, on ${connection.address}.`);
    try {
      const holdfast = createHoldfast({ redis: client, prefix: PREFIX, clientName: "console" });
      const place = { address: connection.address, servers: () => connection.nodes() };
      return await watched(call, holdfast, place, () =>
        play({ ...facts, hire: (shop, withLock) => hireProcesses(common, shop, withLock) }),
      );
    } finally {
      const removed = await removeKeys(connection.nodes());
      await givePrefixBack(client);
      notify(streams, common, `removed ${removed} keys of ${PREFIX}`);
    }
  } finally {
    await connection.close();
  }
}

function report({ common, streams }: Call, workers: number, summary: PlaySummary, signalCode: number): number {
  const { withoutLock, withLock, deaths, faults } = summary;
  // A demo that a signal ended early is not checked for faults.
  const isWell = faults.length === 0 || signalCode !== 0;
  if (common.isJson) {
    streams.stdout.write(jsonLine({ workers, ...summary, ok: isWell }));
  } else {
    for (const fault of isWell ? [] : faults) notify(streams, common, fault);
    const killed = deaths.length === 1 ? "1 worker killed" : `${deaths.length} workers killed`;
    streams.stdout.write(
      `\ndemo: ${withoutLock.duplicates} duplicate orders without a lock, ${withLock.duplicates} with one; ${killed}\n`,
    );
  }
  if (signalCode !== 0) return signalCode;
  return isWell ? EXIT.done : EXIT.no;
}

// @ts-check
/**
 * npm run bench [-- arguments of the benchmark]: runs the benchmark on its own redis-server, or on the servers of the
 * matrix that `--server` names, one after the other.
 */
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, exit } from "node:process";

import { serversNamed } from "./bench-servers.mjs";
import { fetched } from "./matrix/fetch.mjs";
import { BENCH_PEER_NAMES, benchPeers } from "./peers.mjs";
import { build, dependencies, node, redisServer, root, stop } from "./setup.mjs";

const MAIN = "bench/dist/main.js";
/** The user page with the table of `--goals`. */
const PAGE = "docs/benchmarks.md";
/** The exit code of the benchmark if a target was missed. */
const MISSED = 1;

const words = argv.slice(2);
/** Builds the programs of the peers in other languages that are measured. Reports why a program is missing. */
function peers() {
  const named = words.findIndex((word) => word === "--adapters" || word.startsWith("--adapters="));
  const list = words[named] === "--adapters" ? words[named + 1] : words[named]?.slice("--adapters=".length);
  const isOther = words.some((word) => /^--(?:help|curves|profile|moments|timeouts)$/.test(word));
  const wanted = isOther ? [] : (list?.split(",") ?? BENCH_PEER_NAMES);
  return { HOLDFAST_BENCH_PEERS: JSON.stringify(benchPeers(wanted)) };
}

/**
 * Removes an option and its value from the arguments, and returns the value.
 *
 * @param {string} name
 * @returns {string | undefined}
 */
function taken(name) {
  const place = words.findIndex((word) => word === name || word.startsWith(`${name}=`));
  if (place < 0) return undefined;
  const [option = ""] = words.splice(place, 1);
  return option === name ? words.splice(place, 1)[0] : option.slice(name.length + 1);
}

const at = words.findIndex((word) => word === "--server" || word.startsWith("--server="));
if (at < 0 && words.includes("--goals")) stop("--goals needs --server, such as --server redis-7.0,valkey-9.1");
await dependencies();
if (at < 0) {
  await build();
  exit(await node([MAIN, ...words], { HOLDFAST_REDIS_SERVER: await redisServer(), ...peers() }));
}

const list = taken("--server") ?? "";
const isGoals = words.includes("--goals");
const runs = isGoals ? Number(taken("--runs") ?? 1) : 1;
if (isGoals) words.splice(words.indexOf("--goals"), 1);
if (!(Number.isInteger(runs) && runs > 0)) stop("--runs must be a whole number from 1");
const isWritten = isGoals && words.includes("--write-docs");
if (isWritten) words.splice(words.indexOf("--write-docs"), 1);
if (isWritten && words.some((word) => /^--(?:only|adapters)\b/.test(word)))
  stop("--write-docs needs all targets; leave out --only and --adapters");
/** @type {readonly string[]} */
let names = [];
try {
  names = serversNamed(list);
} catch (error) {
  stop(error instanceof Error ? error.message : String(error));
}
if (words.includes("--write-docs"))
  stop("--write-docs uses the installed redis-server; leave out --server, or add --goals");
const programs = names.map((name) => fetched(name));
await build();
const foreign = peers();
if (programs.length === 1 && !isGoals)
  exit(await node([MAIN, ...words], { HOLDFAST_REDIS_SERVER: programs[0], ...foreign }));

/** The worst exit code. */
let code = 0;
const reports = [];
const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const turns = Array.from({ length: runs }, () => [...programs.entries()]).flat();
for (const [turn, [i, program]] of turns.entries()) {
  console.error(`bench: ${names[i]} (${turn + 1} of ${turns.length})`);
  const file = join(folder, `${turn}.json`);
  code = Math.max(
    code,
    await node([MAIN, ...words, "--json"], { HOLDFAST_REDIS_SERVER: program, ...foreign }, openSync(file, "w")),
  );
  if (code > MISSED) break;
  reports.push(JSON.parse(readFileSync(file, "utf8")));
}
rmSync(folder, { recursive: true });
if (code > MISSED) exit(code);
if (words.includes("--json")) {
  console.log(JSON.stringify({ servers: names, reports }));
  exit(code);
}
if (isGoals) {
  const { goalRunOf, goalsTable, withGoals } = await import("../bench/dist/goals.js");
  const table = goalsTable(reports.map(goalRunOf));
  console.log(table);
  const page = join(root, PAGE);
  if (isWritten) writeFileSync(page, withGoals(readFileSync(page, "utf8"), table));
  exit(code);
}
const { sideBySide } = await import("../bench/dist/side-by-side.js");
console.log(sideBySide(reports));

// @ts-check
/**
 * npm run bench [-- arguments of the benchmark]: measured on a redis-server of its own, or on the servers of the matrix that
 * `--server` names, one after the other.
 */
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, exit } from "node:process";

import { serversNamed } from "./bench-servers.mjs";
import { fetched } from "./matrix/fetch.mjs";
import { BENCH_PEER_NAMES, benchPeers } from "./peers.mjs";
import { build, dependencies, node, redisServer, stop } from "./setup.mjs";

const MAIN = "bench/dist/main.js";
/** The exit code of the benchmark if a target was missed. */
const MISSED = 1;

const words = argv.slice(2);
/** Programs of peers in other languages, or why there are none; built only where they are measured. */
function peers() {
  const named = words.findIndex((word) => word === "--adapters" || word.startsWith("--adapters="));
  const list = words[named] === "--adapters" ? words[named + 1] : words[named]?.slice("--adapters=".length);
  const isOther = words.some((word) => /^--(?:help|curves|profile|moments|timeouts)$/.test(word));
  const wanted = isOther ? [] : (list?.split(",") ?? BENCH_PEER_NAMES);
  return { HOLDFAST_BENCH_PEERS: JSON.stringify(benchPeers(wanted)) };
}

const at = words.findIndex((word) => word === "--server" || word.startsWith("--server="));
await dependencies();
if (at < 0) {
  await build();
  exit(await node([MAIN, ...words], { HOLDFAST_REDIS_SERVER: await redisServer(), ...peers() }));
}

const [option = ""] = words.splice(at, 1);
const list = option === "--server" ? (words.splice(at, 1)[0] ?? "") : option.slice("--server=".length);
/** @type {readonly string[]} */
let names = [];
try {
  names = serversNamed(list);
} catch (error) {
  stop(error instanceof Error ? error.message : String(error));
}
if (words.includes("--write-docs")) stop("--write-docs is for the redis-server that is installed; leave out --server");
const programs = names.map((name) => fetched(name));
await build();
const foreign = peers();
if (programs.length === 1) exit(await node([MAIN, ...words], { HOLDFAST_REDIS_SERVER: programs[0], ...foreign }));

/** The worst exit code. */
let code = 0;
const reports = [];
const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
for (const [i, program] of programs.entries()) {
  console.error(`bench: ${names[i]} (${i + 1} of ${names.length})`);
  const file = join(folder, `${i}.json`);
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
const { sideBySide } = await import("../bench/dist/side-by-side.js");
console.log(sideBySide(reports));

// @ts-check
/** The cells of the matrix. Each is a server, a runtime or both, with the suites that must pass. */
import { pins } from "./fetch.mjs";

/**
 * A suite consists of test files, or is the tour for runtimes on which vitest does not run.
 *
 * @typedef {object} Suite
 * @property {string} title  a column of docs/platforms.md
 * @property {readonly string[] | "tour"} files
 * @property {boolean} [isQuiet]  it waits more than it computes, so several may run in parallel
 * @property {boolean} [isLong]  it takes minutes or depends on timeouts, so it does not run for a single change
 */

/**
 * @typedef {object} Cell
 * @property {string} name
 * @property {string} title
 * @property {string} [server]  its pin; if absent, the server that other tests use
 * @property {string} [runtime]  its pin; if absent, the Node that runs this
 * @property {readonly Suite[]} suites
 */

const HERE = "packages/holdfast/tests";
/** @type {Suite} */
const ON_IOREDIS = { title: "contracts on ioredis 6", files: [`${HERE}/contract/ioredis-6.test`], isQuiet: true };
/** @type {Suite} */
const ON_NODE_REDIS = {
  title: "contracts on node-redis 6",
  files: [`${HERE}/contract/node-redis-6.test`],
  isQuiet: true,
};
/** @type {Suite} */
const ON_GLIDE = { title: "contracts on GLIDE", files: [`${HERE}/contract/glide.test`], isQuiet: true };
/** @type {Suite} */
const UNIT = { title: "unit", files: [`${HERE}/unit/`] };
/** @type {Suite} */
const TOUR = { title: "tour", files: "tour" };

/** @type {Suite} */
const SHARDED_CHANNELS = { title: "sharded channels", files: [`${HERE}/sharded-channels/`], isLong: true };

/** @type {readonly Suite[]} */
const OF_SERVERS = [
  ON_IOREDIS,
  ON_NODE_REDIS,
  { title: "stores", files: [`${HERE}/stores/`], isLong: true },
  { title: "faults", files: [`${HERE}/faults/`], isLong: true },
  { title: "Lua", files: [`${HERE}/lua/`] },
  { title: "permissions", files: [`${HERE}/permissions/`], isLong: true },
  { title: "failover", files: [`${HERE}/failover/`], isLong: true },
  SHARDED_CHANNELS,
];

/** @type {readonly Suite[]} */
const OF_NODE = [
  UNIT,
  { title: "contracts embedded", files: [`${HERE}/contract/embedded.test`], isQuiet: true },
  ON_IOREDIS,
  { title: "command line", files: ["packages/cli/tests/"], isLong: true },
];

/** A server without sharded channels. */
const WITHOUT_SHARDED_CHANNELS = "redis-6.2";
/** GLIDE has its own connection, so testing it on one server is enough. */
const WITH_GLIDE = "valkey-9.1";
const SERVERS = {
  "redis-6.2": "Redis 6.2",
  "redis-7.0": "Redis 7.0",
  "redis-7.4": "Redis 7.4",
  "redis-8.0": "Redis 8.0",
  "redis-8.2": "Redis 8.2",
  "valkey-8.0": "Valkey 8.0",
  "valkey-8.1": "Valkey 8.1",
  "valkey-9.1": "Valkey 9.1",
};
const NODES = { "node-20": "Node 20", "node-22": "Node 22", "node-24": "Node 24", "node-26": "Node 26" };
const OTHERS = { bun: "Bun", deno: "Deno" };

/** @type {readonly Cell[]} */
export const cells = [
  ...Object.entries(SERVERS).map(([name, title]) => {
    const own = OF_SERVERS.filter((suite) => suite !== SHARDED_CHANNELS || name !== WITHOUT_SHARDED_CHANNELS);
    return { name, title, server: name, suites: name === WITH_GLIDE ? [...own, ON_GLIDE] : own };
  }),
  ...Object.entries(NODES).map(([name, title]) => ({ name, title, runtime: name, suites: OF_NODE })),
  ...Object.entries(OTHERS).map(([name, title]) => ({ name, title, runtime: name, suites: [TOUR] })),
];

/**
 * The cells that a command line names. Words for servers combined with words for runtimes mean each of these servers on
 * each of these runtimes.
 *
 * @param {readonly string[]} words  parts of names
 * @returns {readonly Cell[]}
 */
export function named(words) {
  /** @param {readonly Cell[]} among */
  const found = (among) => among.filter(({ name }) => words.some((word) => name.includes(word)));
  const servers = found(cells.filter(({ server }) => server !== undefined));
  const runtimes = found(cells.filter(({ runtime }) => runtime !== undefined));
  if (words.length === 0) return cells;
  if (servers.length === 0 || runtimes.length === 0) return [...servers, ...runtimes];
  return servers.flatMap((server) => runtimes.map((runtime) => pair(server, runtime)));
}

/**
 * @param {Cell} server
 * @param {Cell} runtime
 * @returns {Cell}
 */
function pair(server, runtime) {
  const suites = runtime.suites.includes(TOUR) ? [TOUR] : [ON_IOREDIS];
  return { ...server, ...runtime, name: `${server.name} on ${runtime.name}`, suites };
}

/**
 * The part that runs for a change: the contracts on the newest servers, the unit tests on the newest Node with long-term
 * support, and one of the other suites, chosen by the commit.
 *
 * @param {string} commit  its hash
 * @returns {Cell[]}
 */
export function slice(commit) {
  /** @type {Record<string, readonly Suite[]>} */
  const always = {
    "valkey-9.1": [ON_IOREDIS, ON_NODE_REDIS],
    "redis-8.2": [ON_IOREDIS, ON_NODE_REDIS],
    "node-24": [UNIT],
  };
  const rest = cells
    // Not from Debian, which keeps no old versions: a replaced version must not fail an unrelated change.
    .filter(({ name }) => pins[name]?.from !== "debian")
    .flatMap((cell) =>
      cell.suites.filter(({ isLong }) => isLong !== true).map((suite) => ({ ...cell, suites: [suite] })),
    )
    .filter(({ name, suites: [suite] }) => suite === undefined || always[name]?.includes(suite) !== true);
  const chosen = rest[Number.parseInt(commit.slice(0, 8), 16) % rest.length];
  const newest = cells.flatMap((cell) => {
    const suites = always[cell.name];
    return suites === undefined ? [] : [{ ...cell, suites }];
  });
  return chosen === undefined ? newest : [...newest, chosen];
}

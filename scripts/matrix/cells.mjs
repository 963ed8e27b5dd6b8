// @ts-check
/** The cells of the matrix: each is one server or one runtime, with the suites that it must pass. */

/**
 * A suite is files of tests, or the tour for runtimes on which vitest does not run.
 *
 * @typedef {object} Suite
 * @property {string} title  a column of docs/platforms.md
 * @property {readonly string[] | "tour"} files
 */

/**
 * @typedef {object} Cell
 * @property {string} name  of its pin
 * @property {"server" | "runtime"} kind
 * @property {string} title
 * @property {readonly Suite[]} suites
 */

const HERE = "packages/holdfast/tests";
/** @type {Suite} */
const ON_IOREDIS = { title: "contracts on ioredis 6", files: [`${HERE}/contract/ioredis-6.test`] };
/** @type {Suite} */
const ON_NODE_REDIS = { title: "contracts on node-redis 6", files: [`${HERE}/contract/node-redis-6.test`] };
/** @type {Suite} */
const ON_GLIDE = { title: "contracts on GLIDE", files: [`${HERE}/contract/glide.test`] };

/** @type {readonly Suite[]} */
const OF_SERVERS = [
  ON_IOREDIS,
  ON_NODE_REDIS,
  { title: "stores", files: [`${HERE}/stores/`] },
  { title: "faults", files: [`${HERE}/faults/`] },
  { title: "Lua", files: [`${HERE}/lua/`] },
  { title: "permissions", files: [`${HERE}/permissions/`] },
  { title: "failover", files: [`${HERE}/failover/`] },
];

/** @type {readonly Suite[]} */
const OF_NODE = [
  { title: "unit", files: [`${HERE}/unit/`] },
  { title: "contracts embedded", files: [`${HERE}/contract/embedded.test`] },
  ON_IOREDIS,
  { title: "command line", files: ["packages/cli/tests/"] },
];

/** GLIDE has its own connection, so one server is enough to see that it works with the rest. */
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
    const suites = name === WITH_GLIDE ? [...OF_SERVERS, ON_GLIDE] : OF_SERVERS;
    return { name, title, kind: /** @type {const} */ ("server"), suites };
  }),
  ...Object.entries(NODES).map(([name, title]) => ({
    name,
    title,
    kind: /** @type {const} */ ("runtime"),
    suites: OF_NODE,
  })),
  ...Object.entries(OTHERS).map(([name, title]) => ({
    name,
    title,
    kind: /** @type {const} */ ("runtime"),
    suites: [{ title: "tour", files: /** @type {const} */ ("tour") }],
  })),
];

/**
 * The part that a change runs: the newest servers with the contracts, and one of the other cells, which the commit chooses.
 *
 * @param {string} commit  its hash
 * @returns {Cell[]}
 */
export function slice(commit) {
  const newest = ["valkey-9.1", "redis-8.2"];
  const contracts = cells
    .filter(({ name }) => newest.includes(name))
    .map((cell) => ({ ...cell, suites: [ON_IOREDIS, ON_NODE_REDIS] }));
  const others = cells.filter(({ name }) => !newest.includes(name));
  const chosen = others[Number.parseInt(commit.slice(0, 8), 16) % others.length];
  return chosen === undefined ? contracts : [...contracts, chosen];
}

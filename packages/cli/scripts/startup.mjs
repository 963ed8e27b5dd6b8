// @ts-check
/**
 * What the command costs: `holdfast run` beside the bare command that it runs, and `--help`.
 *
 *     node packages/cli/scripts/startup.mjs [--runs 20]
 *
 * Measures what is published (scripts/pack.mjs), with a server of its own on this host, each program started anew and in
 * turn, and prints the median of each. A table for people, and no test: a machine that does something else as well is slower.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { pack } from "./pack.mjs";

const at = argv.indexOf("--runs");
const runs = at < 0 ? 20 : Number(argv[at + 1]);
const folder = mkdtempSync(join(tmpdir(), "holdfast-startup-"));
const port = await freePort();
const server = spawn(
  env.HOLDFAST_REDIS_SERVER ?? "redis-server",
  ["--port", `${port}`, "--bind", "127.0.0.1", "--save", ""],
  {
    cwd: folder,
    stdio: "ignore",
  },
);
try {
  await pack(join(folder, "cli"));
  const main = join(folder, "cli/dist/main.js");
  const url = `redis://127.0.0.1:${port}`;
  const run = [main, "run", "startup", "--connect-timeout", "30s", "-r", url];
  /** @type {Record<string, readonly [string, ...string[]]>} */
  const programs = {
    true: ["true"],
    "node -e 0": [execPath, "-e", "0"],
    "holdfast --help": [execPath, main, "--help"],
    "holdfast run -n -- true": [execPath, ...run, "-n", "--", "true"],
    "holdfast run -- true": [execPath, ...run, "--", "true"],
  };
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(Object.keys(programs).map((name) => [name, []]));
  // The first run waits for the server and fills the caches of the disk.
  spawnSync(execPath, [...run, "--", "true"]);
  for (let i = 0; i < runs; i += 1) {
    for (const [name, [file, ...args]] of Object.entries(programs)) {
      const startedAtMs = performance.now();
      const { status, stderr } = spawnSync(file, args, { encoding: "utf8" });
      if (status !== 0) throw new Error(`${name} exited with ${status}: ${stderr}`);
      times[name]?.push(performance.now() - startedAtMs);
      await sleep(5);
    }
  }
  const median = (/** @type {number[]} */ all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;
  const bare = median(times.true ?? []);
  console.log(`median of ${runs} runs, ms; what is added to the bare command in brackets`);
  for (const [name, all] of Object.entries(times)) {
    const ms = median(all);
    console.log(
      `${name.padEnd(26)} ${ms.toFixed(0).padStart(5)}  (${(ms - bare).toFixed(0)}), best ${all[0]?.toFixed(0)}`,
    );
  }
} finally {
  server.kill("SIGKILL");
  await once(server, "exit").catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}

/** @returns {Promise<number>} */
async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

// @ts-check
/**
 * Measures the cost of telemetry: without subscribers, and with metrics and traces.
 *
 *     REDIS_URL=redis://127.0.0.1:6379 node packages/telemetry/scripts/telemetry-cost.mjs [rounds] [pairs]
 *
 * Times sequential pairs of acquire and release of a free mutex. The baseline is the same library with all uses of
 * channels removed from its compiled files. The variants take turns in changing order, so that other load on the
 * machine affects all of them equally; the median round counts. The baseline is measured twice: the difference
 * between the two results is the measurement error.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv, env, stdout } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Redis } from "ioredis";
import { Registry } from "prom-client";

const ROUNDS = Number(argv[2] ?? 41);
const PAIRS = Number(argv[3] ?? 1_000);
const home = fileURLToPath(new URL("../../holdfast", import.meta.url));

/**
 * Copies the compiled files and removes all uses of channels.
 *
 * @param {string} folder
 */
function copyWithoutTelling(folder) {
  cpSync(join(home, "dist"), folder, { recursive: true });
  let taken = 0;
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js")) continue;
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    const without = text.replaceAll(/\bchannels\.\w+\.hasSubscribers\b/g, () => {
      taken += 1;
      return "false";
    });
    if (without !== text) writeFileSync(path, without);
  }
  if (taken < 8) throw new Error(`only ${taken} looks at channels were found: are the compiled files there?`);
}

/** @param {readonly number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const folder = mkdtempSync(join(home, ".cache-telemetry-"));
const redis = new Redis(env.REDIS_URL ?? "redis://127.0.0.1:6379");
try {
  copyWithoutTelling(folder);
  const without = await import(pathToFileURL(join(folder, "index.js")).href);
  const library = await import("holdfast");
  const { startMetrics } = await import("@holdfast/telemetry/prometheus");
  const otel = await import("@holdfast/telemetry/otel");
  const silent = without.createHoldfast({ redis });
  const telling = library.createHoldfast({ redis });
  const nothing = () => () => {};
  /** @type {readonly { name: string, holdfast: import("holdfast").Holdfast, start: () => () => void }[]} */
  const variants = [
    { name: "nothing is told", holdfast: silent, start: nothing },
    { name: "nothing is told, again", holdfast: silent, start: nothing },
    { name: "nobody listens", holdfast: telling, start: nothing },
    { name: "metrics of prom-client", holdfast: telling, start: () => startMetrics({ register: new Registry() }) },
    // Without an SDK, because its cost is not Holdfast's.
    { name: "metrics and traces of OpenTelemetry, no SDK", holdfast: telling, start: startBoth },
  ];
  function startBoth() {
    const stops = [otel.startMetrics(), otel.startTraces()];
    return () => {
      for (const stop of stops) stop();
    };
  }
  /** @type {number[][]} */
  const tookUs = variants.map(() => []);
  for (let round = -2; round < ROUNDS; round += 1) {
    const order = variants.map((_, at) => (at + Math.abs(round)) % variants.length);
    for (const at of round % 2 === 0 ? order : order.toReversed()) {
      const { holdfast, start } = /** @type {(typeof variants)[number]} */ (variants[at]);
      const stop = start();
      const mutex = holdfast.mutex("telemetry-cost");
      const beganMs = performance.now();
      for (let pair = 0; pair < PAIRS; pair += 1) {
        const lease = await mutex.acquire();
        await lease.release();
      }
      const tookMs = performance.now() - beganMs;
      stop();
      // The first rounds are warm-up.
      if (round >= 0) tookUs[at]?.push((tookMs * 1_000) / PAIRS);
    }
  }
  const base = median(tookUs[0] ?? []);
  stdout.write(`${ROUNDS} rounds of ${PAIRS} pairs of acquire and release on one connection; median round\n\n`);
  stdout.write("| what listens | µs a pair | against nothing told |\n|---|---:|---:|\n");
  for (const [at, { name }] of variants.entries()) {
    const us = median(tookUs[at] ?? []);
    stdout.write(`| ${name} | ${us.toFixed(1)} | ${(us / base).toFixed(3)} |\n`);
  }
  await Promise.all([silent.close(), telling.close()]);
} finally {
  redis.disconnect();
  rmSync(folder, { recursive: true });
}

/**
 * Measures how much faster the guarded counter is than the same sale with a lock, on this machine.
 *
 *     npm run build && REDIS_URL=redis://127.0.0.1:6379 node examples/dist/stock/measure.js [rounds]
 *
 * Each round runs both sales, one after the other, so that a busy period of the machine affects both. Prints medians. A
 * time is from the start signal to the last of a thousand replies, on open connections.
 */
import process from "node:process";
import { hold } from "./sale.js";

const SIZE = { items: 100, buyers: 1_000, processes: 4 };
const rounds = Number(process.argv[2] ?? 7);
const redisUrl = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";

const locked: number[] = [];
const guarded: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  locked.push((await hold("locked", redisUrl, SIZE)).tookMs);
  guarded.push((await hold("guarded", redisUrl, SIZE)).tookMs);
}
const ratios = locked.map((tookMs, round) => tookMs / (guarded[round] ?? Number.NaN));
process.stdout.write(
  `${SIZE.buyers} buyers in ${SIZE.processes} processes, medians of ${rounds} rounds: ` +
    `locked ${median(locked).toFixed(0)} ms, guarded ${median(guarded).toFixed(0)} ms, ` +
    `${median(ratios).toFixed(1)} times as fast (${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)})\n`,
);

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/**
 * Writes a load as CSV to standard output. submissions.csv was made with
 *
 *   node examples/dist/orders/generate.js 2026 200 > examples/orders/submissions.csv
 */
import { formatSubmissions, generateSubmissions } from "./submissions.js";

const [seed, payments] = process.argv.slice(2).map(Number);
if (!isCount(seed, 0, 2 ** 32 - 1) || !isCount(payments, 1, 10_000)) {
  console.error("usage: node examples/dist/orders/generate.js SEED PAYMENTS   (0..4294967295, 1..10000)");
  process.exitCode = 2;
} else {
  process.stdout.write(formatSubmissions(generateSubmissions(seed, payments)));
}

function isCount(value: number | undefined, lowest: number, highest: number): value is number {
  return Number.isInteger(value) && Number(value) >= lowest && Number(value) <= highest;
}

/** One clock for all processes of a machine, as fast to read as `performance.now()`. */

const NANOSECONDS_PER_MS = 1_000_000n;
/** Each try reads one clock between two readings of the other. The try with the shortest interval is the most accurate. */
const TRIES = 50;

const originMs = measureOrigin();

/** Milliseconds on the machine's monotonic clock, which all processes share. */
export function machineMs(): number {
  return performance.now() + originMs;
}

function measureOrigin(): number {
  let narrowestMs = Number.POSITIVE_INFINITY;
  let originMs = 0;
  for (let i = 0; i < TRIES; i += 1) {
    const beforeMs = performance.now();
    const nanoseconds = process.hrtime.bigint();
    const afterMs = performance.now();
    if (afterMs - beforeMs >= narrowestMs) continue;
    narrowestMs = afterMs - beforeMs;
    const machine = Number(nanoseconds / NANOSECONDS_PER_MS) + Number(nanoseconds % NANOSECONDS_PER_MS) / 1e6;
    originMs = machine - (beforeMs + afterMs) / 2;
  }
  return originMs;
}

/** The recorder's clock: CLOCK_MONOTONIC of the machine in ms, which all processes share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

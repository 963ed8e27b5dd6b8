/**
 * What this process has had of the processors so far, in ms. A search that is bounded by it decides as much on a busy machine as on a
 * quiet one.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

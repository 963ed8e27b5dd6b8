/**
 * The processor time that this process has used so far, in ms. A search limited by it gets the same result on a busy
 * machine.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

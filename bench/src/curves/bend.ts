/** Where a line bends, and which resource is the limit there, judged only by the measurements at that point. */

/** What was measured at one size. */
export interface Load {
  readonly x: number;
  /** Sections, or pairs, per second. */
  readonly rate: number;
  /** Percent of one core: all servers together, and all callers' processes together. */
  readonly serverPercent: number;
  readonly callersPercent: number;
  /** Percent of one core used by the busiest server. */
  readonly busiestPercent: number;
  readonly servers: number;
  /** The number of processes that the callers run in. */
  readonly processes: number;
  /** Percent of one core used by other programs on this machine. */
  readonly othersPercent: number;
}

/** A line bends where it falls below this share of the expected rate. */
const BENT = 0.8;
/** A core with this utilization has no capacity left. */
const FULL_PERCENT = 90;
/** With this much used by other programs, they may have caused the result. */
const BUSY_PERCENT = 30;
const PERCENT = 100;
const US_PER_SECOND = 1e6;

/** The first size at which the rate falls below the best rate so far. Undefined if it never falls. */
export function fallOf(loads: readonly Load[]): { readonly before: Load; readonly at: Load } | undefined {
  let best = loads[0];
  for (const load of loads) {
    if (best === undefined || load.rate >= best.rate) best = load;
    else if (load.rate < BENT * best.rate) return { before: best, at: load };
  }
  return undefined;
}

/** The first size at which the rate stops growing. Undefined if it always grows. */
export function kneeOf(loads: readonly Load[]): { readonly before: Load; readonly at: Load } | undefined {
  for (const [i, at] of loads.entries()) {
    const before = loads[i - 1];
    if (before !== undefined && at.rate / before.rate < BENT * (at.x / before.x)) return { before, at };
  }
  return undefined;
}

/** Describes which resource was the limit at a size, on a machine with this number of cores. */
export function limitOf(load: Load, cores: number): string {
  const { serverPercent, busiestPercent, servers, callersPercent, processes, othersPercent } = load;
  const used =
    servers === 1
      ? `the server uses ${whole(serverPercent)} % of a core`
      : `the ${servers} servers use ${whole(serverPercent)} % of a core (the busiest ${whole(busiestPercent)} %)`;
  const shares = `${used} and the callers ${whole(callersPercent)} %`;
  if (busiestPercent >= FULL_PERCENT)
    return `${shares}: ${servers === 1 ? "the server's one thread" : "the one thread of a server"} is the limit`;
  if (serverPercent + callersPercent >= (FULL_PERCENT / PERCENT) * cores * PERCENT)
    return `${shares}, all that ${cores} cores have`;
  if (callersPercent / processes >= FULL_PERCENT) return `${shares}: a caller's one thread is near its limit`;
  if (isDisturbed(load))
    return `${shares}, while other programs use ${whole(othersPercent)} %: the machine was not idle, which may explain the result`;
  return `${shares}: neither is at its limit, and other programs use ${whole(othersPercent)} %, so the rest is latency between them`;
}

/** The cost of a section or a pair at a size, in µs of a core. */
export function costsOf({ rate, serverPercent, callersPercent }: Load): {
  readonly callersUs: number;
  readonly serverUs: number;
} {
  const us = (percent: number): number => (percent / PERCENT / rate) * US_PER_SECOND;
  return { callersUs: us(callersPercent), serverUs: us(serverPercent) };
}

/** The costs in words. */
export function costOf(load: Load): string {
  const { callersUs, serverUs } = costsOf(load);
  return `${threeDigits(callersUs)} µs of the callers and ${threeDigits(serverUs)} µs of the server`;
}

/** Whether other programs used so much that they may have caused the result. */
export function isDisturbed({ othersPercent }: Load): boolean {
  return othersPercent >= BUSY_PERCENT;
}

/** Rounds to three significant digits, which is as precise as these measurements are. */
export function threeDigits(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString("en-US");
}

function whole(percent: number): string {
  return percent.toFixed(0);
}

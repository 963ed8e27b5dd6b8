/** Where a line bends, and what was used up there: said from what was measured at that point, and from nothing else. */

/** What was measured at one size. */
export interface Load {
  readonly x: number;
  /** Sections, or pairs, per second. */
  readonly rate: number;
  /** Shares of one core, in percent: of all servers together, and of all processes of callers. */
  readonly serverPercent: number;
  readonly callersPercent: number;
  /** That of the server that is used most. */
  readonly busiestPercent: number;
  readonly servers: number;
  /** How many processes the callers are in. */
  readonly processes: number;
  /** Used by neither of them: by whatever else this machine did. */
  readonly othersPercent: number;
}

/** Below this share of what was expected a line has bent. */
const BENT = 0.8;
/** A core with this utilization has no capacity left. */
const FULL_PERCENT = 90;
/** So much for others, and what is seen may be their work. */
const BUSY_PERCENT = 30;
const PERCENT = 100;
const US_PER_SECOND = 1e6;

/** The first size at which the rate falls below what was reached before; undefined where it never does. */
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

/** What was used up at a size, with a machine of so many cores. */
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
    return `${shares}, while others use ${whole(othersPercent)} %: this machine was not quiet, which may be all that is seen here`;
  return `${shares}: neither is used up, and others use ${whole(othersPercent)} %, so that the rest is waiting for the way between them`;
}

/** What a section, or a pair, costs at a size, in µs of a core. */
export function costsOf({ rate, serverPercent, callersPercent }: Load): {
  readonly callersUs: number;
  readonly serverUs: number;
} {
  const us = (percent: number): number => (percent / PERCENT / rate) * US_PER_SECOND;
  return { callersUs: us(callersPercent), serverUs: us(serverPercent) };
}

/** The same in words. */
export function costOf(load: Load): string {
  const { callersUs, serverUs } = costsOf(load);
  return `${threeDigits(callersUs)} µs of the callers and ${threeDigits(serverUs)} µs of the server`;
}

/** Whether others used so much that what was measured may be their work. */
export function isDisturbed({ othersPercent }: Load): boolean {
  return othersPercent >= BUSY_PERCENT;
}

/** Rounds to the number of digits that such a measurement justifies. */
export function threeDigits(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString("en-US");
}

function whole(percent: number): string {
  return percent.toFixed(0);
}

/**
 * Until the compiler has optimized the code, a library that does much in JavaScript is at a disadvantage compared with one
 * that does little. On a slow machine, that takes seconds.
 */

/** A rate that rises by less is no longer rising. */
const RISE = 1.05;
/** One slow run says little, because other processes may have used the core. */
const RUNS_WITHOUT_RISE = 2;
const RUNS_MAX = 15;

/** Runs the load until its rate no longer rises. @param run  runs it for about a second; returns its rate */
export async function warmUp(run: () => Promise<number>): Promise<void> {
  let best = 0;
  for (let runs = 0, flat = 0; runs < RUNS_MAX && flat < RUNS_WITHOUT_RISE; runs += 1) {
    const rate = await run();
    flat = rate > best * RISE ? 0 : flat + 1;
    best = Math.max(best, rate);
  }
}

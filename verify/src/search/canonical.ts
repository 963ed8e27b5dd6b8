/**
 * The same name for states that differ only in when they are.
 *
 * A state is text, and every number of sixteen digits in it is a moment or a token in microseconds of the server's
 * clock. What the scripts do depends on their order, on which follows which at once, and on how far off the ones to
 * come are; so the ones up to now are numbered through, and the ones to come keep their distance in halves of a tick.
 * What is further off than the worlds look ahead counts as equally far, and never comes nearer: the minutes for which
 * fences and queues outlive their use do not pass here.
 */

/** One step of time, in ms. All that happens between two steps happens in less than one ms. */
export const TICK_MS = 1_000;
/** The length of a lease, which ends in the second tick after the one in which it began. */
export const LEASE_MS = 1_500;
/** A lease is good in the tick in which it begins and in the next one. */
export const LEASE_TICKS = 2;
/** The length of a grant by message until it is confirmed: over in the next tick. */
export const HAND_OFF_MS = 500;
/** A grant by message is good only in the tick in which it is made, until it is confirmed. */
export const HAND_OFF_TICKS = 1;

const NOW_US = 2_000_000_000_000_000;
const HALF_TICK_US = (TICK_MS * 1_000) / 2;
/** More than there are moments to come: what is set from now on ends after what was set before. */
const MOMENTS = 1_000;
const FAR_HALF_TICKS = 100;
const FAR_US = 800_000_000;
/** A key that stays longer than this, in ms, stays as long as the world. */
const FAR_MS = 30_000;

/** The clock of a world at its beginning. */
export const START_US: number = NOW_US;

const MOMENT = /\d{16}/g;

/** Numbers the moments in `text` again; `nowUs` is the server's clock, and is somewhere in it. */
export function canonical(text: string, nowUs: number): string {
  const found = text.match(MOMENT) ?? [];
  const distinct = [...new Set(found)].sort();
  const startUs = nowUs - (nowUs % (TICK_MS * 1_000));
  const renamed = new Map<string, string>();
  for (const [rank, moment] of distinct.entries()) {
    const us = Number(moment);
    const halves = us <= nowUs ? 0 : Math.floor((us - startUs) / HALF_TICK_US);
    // Where a clock stands still, tokens run ahead of it by single microseconds: their rank keeps them above now.
    const offUs = halves === 0 ? MOMENTS : halves > FAR_HALF_TICKS ? FAR_US : halves * HALF_TICK_US;
    renamed.set(moment, String(NOW_US + offUs + rank));
  }
  return text.replace(MOMENT, (moment) => renamed.get(moment) ?? moment);
}

/** What is left of a key after `passedMs`, in ms; undefined if it is gone. */
export function leftAfter(leftMs: number, passedMs: number): number | undefined {
  if (leftMs < 0) return leftMs;
  if (leftMs > FAR_MS) return FAR_MS * 2;
  return leftMs < passedMs ? undefined : leftMs - passedMs;
}

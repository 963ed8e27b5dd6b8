/**
 * Gives states that differ only in time the same canonical text.
 *
 * A state is text, and every 16-digit number in it is an instant or a token, in microseconds of the server's clock. What
 * the scripts do depends on the order of these numbers, on which of them are consecutive, and on how far away future
 * instants are. So past ones are numbered consecutively, and future ones keep their distance in half ticks. Instants
 * further away than a world looks ahead count as equally far and never come closer: the minutes for which fences and
 * queues outlive their use do not pass here.
 */

/** One step of time, in ms. Everything between two steps happens within less than 1 ms. */
export const TICK_MS = 1_000;
/** The length of a lease, which ends in the second tick after the one in which it began. */
export const LEASE_MS = 1_500;
/** A lease is valid in the tick in which it begins and in the next one. */
export const LEASE_TICKS = 2;
/** The length of a grant by message until it is confirmed. It ends in the next tick. */
export const HAND_OFF_MS = 500;
/** Until it is confirmed, a grant by message is valid only in the tick in which it is made. */
export const HAND_OFF_TICKS = 1;

const NOW_US = 2_000_000_000_000_000;
const HALF_TICK_US = (TICK_MS * 1_000) / 2;
/** More than the number of instants in a state, so that leases set from now on end after earlier ones. */
const MOMENTS = 1_000;
const FAR_HALF_TICKS = 100;
const FAR_US = 800_000_000;
/** A key with a longer time to live than this, in ms, never expires in a world. */
const FAR_MS = 30_000;

/** The initial clock of a world. */
export const START_US: number = NOW_US;

const MOMENT = /\d{16}/g;

/** Renumbers the instants in `text`; `nowUs` is the server's clock, which also occurs in `text`. */
export function canonical(text: string, nowUs: number): string {
  const found = text.match(MOMENT) ?? [];
  const distinct = [...new Set(found)].sort();
  const startUs = nowUs - (nowUs % (TICK_MS * 1_000));
  const renamed = new Map<string, string>();
  for (const [rank, moment] of distinct.entries()) {
    const us = Number(moment);
    const halves = us <= nowUs ? 0 : Math.floor((us - startUs) / HALF_TICK_US);
    // While a clock stands still, tokens run ahead of it by single microseconds; their rank keeps them above now.
    const offUs = halves === 0 ? MOMENTS : halves > FAR_HALF_TICKS ? FAR_US : halves * HALF_TICK_US;
    renamed.set(moment, String(NOW_US + offUs + rank));
  }
  return text.replace(MOMENT, (moment) => renamed.get(moment) ?? moment);
}

/** The remaining time to live of a key after `passedMs`, in ms; undefined if it has expired. */
export function leftAfter(leftMs: number, passedMs: number): number | undefined {
  if (leftMs < 0) return leftMs;
  if (leftMs > FAR_MS) return FAR_MS * 2;
  return leftMs < passedMs ? undefined : leftMs - passedMs;
}

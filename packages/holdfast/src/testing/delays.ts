/** Every delay a test uses. On a slow machine raise TEST_DELAY_FACTOR, not a single number. */
const factor = Number(process.env.TEST_DELAY_FACTOR ?? 1);

/** Long enough for a request to be on its way, or for a waiter to be queued. Nothing is proved by it. */
export const SHORT_MS: number = Math.ceil(50 * factor);

/** A lease that a test lets expire. */
export const BRIEF_LEASE_MS: number = Math.ceil(300 * factor);

/** What is quick must be done by then. */
export const SOON_MS: number = Math.ceil(2_000 * factor);

/** Never reached in a passing run. */
export const LONG_MS: number = Math.ceil(15_000 * factor);

/** Resolves after `ms`. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Leases for a case that has to be on time: a machine that stands still for longer than one may be given the next. */
const LEASES_MS: readonly number[] = [BRIEF_LEASE_MS, 4 * BRIEF_LEASE_MS, 8 * BRIEF_LEASE_MS];

/**
 * Plays a case that holds for a lease of any length, as long as its process and the server run in time for it: with a
 * brief one, and if that fails with a longer one. What is wrong at every length is wrong.
 *
 * @throws what the case throws with the longest
 */
export async function withLeaseInTime(play: (leaseMs: number) => Promise<void>): Promise<void> {
  const [longestMs = BRIEF_LEASE_MS, ...shorter] = LEASES_MS.toReversed();
  for (const leaseMs of shorter.toReversed()) {
    const isDone = await play(leaseMs).then(
      () => true,
      () => false,
    );
    if (isDone) return;
  }
  await play(longestMs);
}

/** Resolves as soon as `condition` holds. @throws Error  it did not within LONG_MS */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endAtMs = performance.now() + LONG_MS;
  while (!(await condition())) {
    if (performance.now() > endAtMs) throw new Error(`not within ${LONG_MS} ms: ${what}`);
    await sleep(5);
  }
}

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

/** Resolves as soon as `condition` holds. @throws Error  it did not within LONG_MS */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endAtMs = performance.now() + LONG_MS;
  while (!(await condition())) {
    if (performance.now() > endAtMs) throw new Error(`not within ${LONG_MS} ms: ${what}`);
    await sleep(5);
  }
}

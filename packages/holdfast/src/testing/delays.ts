import { StoreError } from "../index.js";

/** Scales every delay of the tests. On a slow machine, raise TEST_DELAY_FACTOR instead of individual delays. */
const factor = Number(process.env.TEST_DELAY_FACTOR ?? 1);

/** Usually long enough for a request to be sent or a waiter to be queued. A test must not depend on it to pass. */
export const SHORT_MS: number = Math.ceil(50 * factor);

/** Length of a lease that a test lets expire. */
export const BRIEF_LEASE_MS: number = Math.ceil(300 * factor);

/** Upper bound for an operation that has to be quick. */
export const SOON_MS: number = Math.ceil(2_000 * factor);

/** Timeout that a passing test never reaches. */
export const LONG_MS: number = Math.ceil(15_000 * factor);

/** Timeout of `until`, longer than any operation takes on a busy machine. */
const PATIENCE_MS: number = Math.ceil(60_000 * factor);

/** Resolves after `ms`. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Factors for the leases of a timing-sensitive test. If the test fails with one factor, it runs with the next. */
const TIMES_LONGER: readonly number[] = [1, 4, 8];

/**
 * Runs a test that must pass with a lease of any length, provided that the process and the server do not stall for that
 * long. Begins with a brief lease and repeats the test with longer ones if it fails. A real bug makes the test fail
 * with every length.
 *
 * @param briefMs  the first lease, in ms
 * @throws the error from the run with the longest lease
 */
export async function withLeaseInTime(
  play: (leaseMs: number) => Promise<void>,
  briefMs: number = BRIEF_LEASE_MS,
): Promise<void> {
  const [longest = 1, ...shorter] = TIMES_LONGER.toReversed();
  for (const times of shorter.toReversed()) {
    const isDone = await play(times * briefMs).then(
      () => true,
      () => false,
    );
    if (isDone) return;
  }
  await play(longest * briefMs);
}

/**
 * Returns what a short wait resolves to or throws. A wait that ends while the server stalls gets no reply to its last
 * request and fails with a StoreError. In that case the wait is repeated, up to three times in total.
 */
export async function endOf(wait: () => Promise<unknown>): Promise<unknown> {
  let end: unknown;
  for (let times = 1; times <= TIMES_LONGER.length; times += 1) {
    end = await wait().catch((reason: unknown) => reason);
    if (!(end instanceof StoreError)) break;
  }
  return end;
}

/** Resolves as soon as `condition` returns true. @throws Error  after a minute (times TEST_DELAY_FACTOR) */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endAtMs = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > endAtMs) throw new Error(`waited ${PATIENCE_MS} ms for: ${what}`);
    await sleep(5);
  }
}

/** A promise with the functions that settle it. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value | PromiseLike<Value>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Creates a promise that the test settles itself. */
export function deferred<Value>(): Deferred<Value> {
  let made: Omit<Deferred<Value>, "promise"> | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    made = { resolve, reject };
  });
  // The executor has already run.
  return { promise, ...(made as unknown as Omit<Deferred<Value>, "promise">) };
}

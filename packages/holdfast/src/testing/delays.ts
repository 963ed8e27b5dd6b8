import { StoreError } from "../index.js";

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

/** How long somebody looks for what has to come. Longer than anything takes on a machine that does much else. */
const PATIENCE_MS: number = Math.ceil(60_000 * factor);

/** Resolves after `ms`. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Leases for a case that has to be on time: a machine that stands still for longer than one may be given the next. */
const TIMES_LONGER: readonly number[] = [1, 4, 8];

/**
 * Plays a case that holds for a lease of any length, as long as its process and the server run in time for it: with a
 * brief one, and if that fails with a longer one. What is wrong at every length is wrong.
 *
 * @param briefMs  the lease that it begins with, in ms
 * @throws what the case throws with the longest
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
 * What a wait ends with that is over soon. A server that stands still just then, for longer than a last question may
 * take, leaves it without an answer; it is played again then. Who is without one each time is wrong.
 */
export async function endOf(wait: () => Promise<unknown>): Promise<unknown> {
  let end: unknown;
  for (let times = 1; times <= TIMES_LONGER.length; times += 1) {
    end = await wait().catch((reason: unknown) => reason);
    if (!(end instanceof StoreError)) break;
  }
  return end;
}

/** Resolves as soon as `condition` holds. @throws Error  it did not within a minute */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endAtMs = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > endAtMs) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await sleep(5);
  }
}

/** A promise, and how to settle it. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value | PromiseLike<Value>) => void;
  readonly reject: (reason: unknown) => void;
}

/** A promise that a test settles when its turn has come. */
export function deferred<Value>(): Deferred<Value> {
  let made: Omit<Deferred<Value>, "promise"> | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    made = { resolve, reject };
  });
  // The executor has run by now.
  return { promise, ...(made as unknown as Omit<Deferred<Value>, "promise">) };
}

/** The longest delay that a timer accepts, in ms. A timer with a longer delay fires immediately. */
const TIMER_MAX_MS = 2_147_483_647;

/** Limits a duration to the range that a timer accepts. */
function timerMs(durationMs: number): number {
  return Math.min(Math.max(1, durationMs), TIMER_MAX_MS);
}

/**
 * Calls `onOver` after `timeoutMs`, once the data that has arrived by that time has been read. After the process has
 * been paused, timers run before sockets are read, so a reply that arrived in time would otherwise be missed.
 */
export function startTimeout(onOver: () => void, timeoutMs: number): NodeJS.Timeout {
  return setTimeout(() => setImmediate(onOver), timerMs(timeoutMs));
}

/**
 * Settles like `promise`, or rejects after `timeoutMs`. A later result is ignored, including a late rejection.
 */
export function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = startTimeout(() => reject(new Error(`no reply within ${Math.round(timeoutMs)} ms`)), timeoutMs);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (cause: unknown) => {
        clearTimeout(timer);
        reject(cause);
      },
    );
  });
}

/**
 * Waits at most `timeoutMs` for all of `promises` to settle, and returns the results of the fulfilled ones.
 *
 * @throws the rejection of the first promise, if none is fulfilled
 */
export async function allThatAnswer<T>(promises: readonly Promise<T>[], timeoutMs: number): Promise<T[]> {
  const ends = await Promise.allSettled(promises.map((promise) => within(timeoutMs, promise)));
  const answers = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  if (answers.length > 0) return answers;
  const [first] = ends;
  throw first?.status === "rejected" ? first.reason : new Error("the client has no servers");
}

/** Resolves after `delayMs`. Does not keep the process alive. */
export function unrefSleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs).unref());
}

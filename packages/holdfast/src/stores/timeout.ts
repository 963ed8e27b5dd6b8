/** Longest delay a timer accepts; a longer one would fire at once. */
const TIMER_MAX_MS = 2_147_483_647;

/** Brings a duration into the range that a timer accepts. */
function timerMs(durationMs: number): number {
  return Math.min(Math.max(1, durationMs), TIMER_MAX_MS);
}

/**
 * Calls `onOver` after `timeoutMs`, and not before what had come by then is read: where the process stood still, its timers run before
 * its sockets are looked at, and an answer that lies there is an answer in time.
 */
export function startTimeout(onOver: () => void, timeoutMs: number): NodeJS.Timeout {
  return setTimeout(() => setImmediate(onOver), timerMs(timeoutMs));
}

/**
 * The outcome of `promise`, or a rejection after `timeoutMs`.
 *
 * What comes later is dropped, a late rejection too.
 */
export function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = startTimeout(() => reject(new Error(`no answer within ${Math.round(timeoutMs)} ms`)), timeoutMs);
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
 * The answers among `promises`, when each of them has settled or has had `timeoutMs` for it.
 *
 * @throws what the first of them rejects with, if none is fulfilled
 */
export async function allThatAnswer<T>(promises: readonly Promise<T>[], timeoutMs: number): Promise<T[]> {
  const ends = await Promise.allSettled(promises.map((promise) => within(timeoutMs, promise)));
  const answers = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  if (answers.length > 0) return answers;
  const [first] = ends;
  throw first?.status === "rejected" ? first.reason : new Error("there is nobody to ask");
}

/** Resolves after that time. It does not keep the process alive. */
export function unrefSleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs).unref());
}

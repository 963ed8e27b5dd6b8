/**
 * The network of an embedded server: every request, reply and published message is one task.
 *
 * Each task must be run at most once, and never within `schedule` itself. One that is never run is a lost packet;
 * one that is run late is a slow one; running them in another order is a network that reorders.
 */
export interface Scheduler {
  schedule(task: () => void): void;
}

/** Runs tasks in order, a batch per turn of the event loop, so that timers are served between two batches. */
export function immediateScheduler(): Scheduler {
  let waiting: (() => void)[] = [];
  let isArmed = false;
  const arm = (): void => {
    if (isArmed || waiting.length === 0) return;
    isArmed = true;
    setImmediate(runBatch);
  };
  const runBatch = (): void => {
    const batch = waiting;
    waiting = [];
    isArmed = false;
    let done = 0;
    try {
      for (const task of batch) {
        done++;
        task();
      }
    } finally {
      // A listener that threw must not take the messages behind it with it.
      if (done < batch.length) waiting = batch.slice(done).concat(waiting);
      arm();
    }
  };
  return {
    schedule(task) {
      waiting.push(task);
      arm();
    },
  };
}

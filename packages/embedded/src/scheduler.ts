/**
 * The network of an embedded server: every request, reply and published message is one task.
 *
 * Each task must be run at most once, and never within `schedule` itself. One that is never run is a lost packet;
 * one that is run late is a slow one; running them in another order is a network that reorders.
 */
export interface Scheduler {
  schedule(task: () => void): void;
}

/** The real one, unless timers were faked before this module was loaded. A faked one may never run what it was given. */
const setImmediateAtLoad = globalThis.setImmediate;

/** Runs tasks in order, a batch per turn of the event loop, so that timers are served between two batches. */
export function immediateScheduler(): Scheduler {
  let waiting: (() => void)[] = [];
  /** What runs the next batch: Node's own, and where a test fakes timers, that too. */
  let armedWith: typeof setImmediate | undefined;
  const arm = (): void => {
    const { setImmediate: present } = globalThis;
    if (armedWith === present || waiting.length === 0) return;
    if (armedWith === undefined && present !== setImmediateAtLoad) setImmediateAtLoad(runBatch);
    armedWith = present;
    present(runBatch);
  };
  const runBatch = (): void => {
    const batch = waiting;
    waiting = [];
    armedWith = undefined;
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

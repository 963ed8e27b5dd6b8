/**
 * The network of an embedded server. Every request, reply and published message is one task.
 *
 * A scheduler must run each task at most once, and never within `schedule` itself. A task that never runs simulates a
 * lost packet, a late task simulates a slow packet, and reordered tasks simulate reordered packets.
 */
export interface Scheduler {
  /** Runs `task` later, or never. */
  schedule(task: () => void): void;
}

/**
 * The real `setImmediate` (unless timers were faked before this module loaded), because a fake may never run callbacks.
 */
const setImmediateAtLoad = globalThis.setImmediate;

/** Creates a scheduler that runs tasks in order, one batch per event-loop turn, so that timers run between batches. */
export function immediateScheduler(): Scheduler {
  let waiting: (() => void)[] = [];
  /** The `setImmediate` that the next batch was passed to. If it is a fake, the batch also went to the real one. */
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
      // A listener that throws must not prevent the delivery of later messages.
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

/** What a server may keep when there are no holders and no waiters. */

/**
 * Data about the last grant, leader, signals, clients and their protocol; and the state of locks with a size or a
 * count.
 */
const REMEMBERED =
  /:fence$|:signalled$|^hf:client:|^hf:protocol$|:value$|^hf:(?:semaphore|read-write-lock|count-down-latch|barrier):/;

/** Whether that key may outlive every lease and wait. */
export function mayOutlive(key: string): boolean {
  return !key.endsWith(":queue") && REMEMBERED.test(key);
}

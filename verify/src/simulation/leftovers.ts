/** What a server may keep when there are no holders and no waiters. */

/**
 * What is known of the last grant, of the last leader, of signals, clients and their protocol; and the state of what has a size or a
 * count.
 */
const REMEMBERED =
  /:fence$|:signalled$|^hf:client:|^hf:protocol$|:value$|^hf:(?:semaphore|read-write-lock|count-down-latch|barrier):/;

/** Whether that key may outlive every lease and every wait. */
export function mayOutlive(key: string): boolean {
  return !key.endsWith(":queue") && REMEMBERED.test(key);
}

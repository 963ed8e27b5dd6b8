import { Lock } from "../core/lock.js";

/**
 * Mutual exclusion across processes: at most one live lease per name, on one server, between failovers.
 *
 * Not reentrant: a holder that acquires again waits for itself.
 *
 * Waiters stand in a queue on the server, and a release hands the mutex directly to the first of them that is
 * still alive, in one step, first come, first served. A holder that dies blocks the others until its lease
 * ends. A paused or cut-off holder is told by `lease.signal` and `lease.assertHeld()` before its lease ends on
 * the server; what it does after that is its own affair, unless the resource checks `lease.token`.
 *
 * Algorithm: ours (docs/adr/001-queue-on-the-server.md). One key holds the owner, one the last token, one the queue.
 */
export class Mutex extends Lock {}

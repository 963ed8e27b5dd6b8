/**
 * Keeps what many callers share out of the async context of the one that happened to start it.
 *
 * Node hands the context of `AsyncLocalStorage` on to every timer and connection that is made in it. A subscriber connection or a
 * timer that is made during the first acquire would carry the context of that request for as long as the process runs: abort
 * handlers of other requests would read the wrong store, and that store could never be collected.
 */
const { AsyncResource } = process.getBuiltinModule("node:async_hooks");

/** Made when the library is loaded, so that it has the context of no request. */
const atLoad = new AsyncResource("Holdfast");

/** Runs `work` in the async context in which the library was loaded; answers with what it returns. */
export function outsideRequests<Result>(work: () => Result): Result {
  return atLoad.runInAsyncScope(work);
}

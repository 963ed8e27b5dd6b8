// @ts-check
/** The counterpart of tests/support/program.ts: replies to calls until the test disconnects. */
import process from "node:process";

/** Input that the test passed to `startProgram`. @type {any} */
export const args = JSON.parse(process.argv[2] ?? "{}");

/** @param {Record<string, (input: any) => unknown>} verbs */
export function serve(verbs) {
  /** @param {any} call */
  async function answer({ id, verb, input }) {
    try {
      const value = await verbs[verb]?.(input);
      process.send?.({ id, value });
    } catch (thrown) {
      const { name, message, code, reason } = /** @type {any} */ (thrown);
      process.send?.({ id, error: { name, message, code, reason } });
    }
  }
  process.on("message", (call) => void answer(call));
  process.on("disconnect", () => process.exit());
}

/** Sends the test an unsolicited message; resolves when it has been written. @param {string} name */
export function tell(name, value = {}) {
  return new Promise((resolve) => process.send?.({ name, value }, undefined, undefined, () => resolve(undefined)));
}

/** Milliseconds on a clock that all processes of this machine share. */
export function sharedClockMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Resolves when the signal has aborted, even if it already has. @param {AbortSignal} signal */
export function aborted(signal) {
  return new Promise((resolve) => {
    signal.addEventListener("abort", resolve);
    if (signal.aborted) resolve(undefined);
  });
}

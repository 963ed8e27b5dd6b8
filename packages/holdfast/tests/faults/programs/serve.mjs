// @ts-check
/** The other end of tests/support/program.ts: answers calls until the test hangs up. */
import process from "node:process";

/** What the test gave to `startProgram`. @type {any} */
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

/** Tells the test something that it did not ask for; resolves when that is on its way. @param {string} name */
export function tell(name, value = {}) {
  return new Promise((resolve) => process.send?.({ name, value }, undefined, undefined, () => resolve(undefined)));
}

/** Milliseconds of a clock that all processes of this machine share. */
export function sharedClockMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Resolves when it has aborted, which it may have by now. @param {AbortSignal} signal */
export function aborted(signal) {
  return new Promise((resolve) => {
    signal.addEventListener("abort", resolve);
    if (signal.aborted) resolve(undefined);
  });
}

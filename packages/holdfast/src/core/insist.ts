import { StoreError } from "./errors.js";
import type { Session } from "./session.js";
import { asUncertain } from "./uncertain-reply.js";

const PAUSE_MS = 50;

/**
 * Sends a request until it is answered, for about two command time-outs; the request must count once however
 * often it is sent.
 *
 * @throws StoreError  it was not answered in that time, or never will be; `mayHaveRun` is true if any of the tries may have run
 */
export async function insist<Answer>(
  session: Pick<Session, "runtime" | "commandTimeoutMs">,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const { runtime, commandTimeoutMs } = session;
  const stopAtMs = runtime.monotonicMs() + commandTimeoutMs * 2;
  for (let mayHaveRun = false; ; ) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      mayHaveRun ||= error.mayHaveRun;
      if (!error.transient || runtime.monotonicMs() >= stopAtMs)
        throw mayHaveRun ? asUncertain(error, error.lockName) : error;
      await new Promise<void>((resume) => runtime.startTimer(resume, PAUSE_MS, true));
    }
  }
}

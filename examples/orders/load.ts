/**
 * The customers. Each submission is sent to its copy at its time. A customer without a confirmation presses the button
 * again, which sends the request to the next copy.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type JsonAnswer, postJson } from "./loopback-http.js";
import type { Confirmation } from "./order-service.js";
import type { Payment, Submission } from "./submissions.js";

/** The result of one submission. */
export interface Answered {
  /** Whether the customer got the recorded response to an earlier press. */
  readonly isReplay: boolean;
  readonly submission: Submission;
  /** Null if the customer gave up. */
  readonly confirmation: Confirmation | null;
  /** How often the customer had to press again because a copy had crashed, was busy or failed. */
  readonly again: number;
}

/** A customer gives up after this many failures, which takes at least half a minute. */
const PATIENCE = 30;
const PRESS_AGAIN_AFTER_MS = 100;
const SLOWEST_ANSWER_MS = 20_000;

/**
 * Sends all submissions and waits for all responses.
 *
 * @param urls        the copies; a submission's `copy` is taken modulo their number
 * @param onAnswered  called after each response
 */
export async function submitAll(
  submissions: readonly Submission[],
  urls: readonly string[],
  onAnswered: () => void,
): Promise<Answered[]> {
  return await Promise.all(
    submissions.map(async (submission) => {
      await sleep(submission.submittedAtMs);
      const answered = await submitUntilConfirmed(submission, urls);
      onAnswered();
      return answered;
    }),
  );
}

async function submitUntilConfirmed(submission: Submission, urls: readonly string[]): Promise<Answered> {
  const { submittedAtMs: _, copy, ...payment } = submission;
  for (let again = 0; again < PATIENCE; again += 1) {
    const answer = await submit(payment, urls[(copy - 1 + again) % urls.length] ?? "");
    if (answer?.status === 200) {
      return { submission, confirmation: answer.body as Confirmation, again, isReplay: answer.isReplay === true };
    }
    const pauseMs = answer?.retryAfterSeconds === undefined ? PRESS_AGAIN_AFTER_MS : answer.retryAfterSeconds * 1_000;
    await sleep(pauseMs);
  }
  return { submission, confirmation: null, again: PATIENCE, isReplay: false };
}

/** One press; null if there was no response. */
async function submit(payment: Payment, url: string): Promise<JsonAnswer | null> {
  try {
    return await postJson(`${url}/payments`, payment, {
      from: payment.customer,
      // The page has it in a hidden field, so that each refresh sends the same one again.
      key: payment.paymentId,
      signal: AbortSignal.timeout(SLOWEST_ANSWER_MS),
    });
  } catch {
    return null;
  }
}

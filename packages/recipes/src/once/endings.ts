/** Decides what is recorded when the work of a call has ended. */
import { show } from "holdfast/internal";
import { encodeFailure, wordsOf } from "../failure.js";
import type { OnceOptions, OnceOutcome, OncePolicy, ResolvedOnce } from "./options.js";
import type { Ending } from "./protocol.js";

const REASON_MAX = 500;

/**
 * The policy that `after` chooses for the outcome. If `after` throws or returns an unknown value, the call is blocked.
 */
export function policyOf<Value>(
  outcome: OnceOutcome<Value>,
  after: OnceOptions<Value>["after"],
): { readonly policy: OncePolicy; readonly refusal?: { readonly error: unknown } } {
  if (after === undefined) return { policy: outcome.ok ? "keep" : "release" };
  try {
    const policy = after(outcome);
    if (policy === "keep" || policy === "release" || policy === "block") return { policy };
    // Untyped code might pass an async function, whose unhandled rejection would end the process.
    void Promise.resolve(policy).catch(() => {});
    throw new TypeError(
      `after must return "keep", "release" or "block"; got ${show(policy)}. The call is now blocked: resolve it with resolveOnce`,
    );
  } catch (error) {
    return { policy: "block", refusal: { error } };
  }
}

/** The recorded part of the outcome. */
export function endingOf<Value>(
  outcome: OnceOutcome<Value>,
  policy: OncePolicy,
  { codec, valueBytesMax }: Pick<ResolvedOnce, "codec" | "valueBytesMax">,
): Ending {
  if (policy === "release") return { state: "released", text: "" };
  if (policy === "block") return { state: "blocked", text: reasonOf(outcome) };
  if (!outcome.ok) return { state: "failed", text: encodeFailure(outcome.error, valueBytesMax) };
  try {
    const text = codec.encode(outcome.value);
    if (Buffer.byteLength(text) <= valueBytesMax) return { state: "done", text };
  } catch {
    // A value that cannot be encoded is treated like one that is too large: the call is done and does not run again.
  }
  return { state: "bare", text: "" };
}

function reasonOf<Value>(outcome: OnceOutcome<Value>): string {
  if (outcome.ok) return "the work returned, but `after` did not keep its result";
  const { name, message } = wordsOf(outcome.error);
  return `${name}: ${message}`.slice(0, REASON_MAX);
}

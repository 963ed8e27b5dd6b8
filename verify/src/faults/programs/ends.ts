/** How a call ended, in the words of the record. */
import type { Held, Part, Refused } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { Ended } from "./recorder.js";

/** Whether it is not a success. */
export function isRefused(end: object): end is Refused {
  return "outcome" in end;
}

/** What is known of one that did not succeed. */
export function endOf({ outcome, refusal }: Refused): Omit<Ended, "returnMs"> {
  return outcome === "info" || refusal === undefined ? { outcome: "info" } : { outcome, refusal };
}

/** Which member refused is not said, so of none it can be said that it was taken. */
export function whole(end: Refused): Refused {
  return end.refusal === "busy" ? { ...end, refusal: "gave-up" } : end;
}

/** One of several that was refused says nothing of the others. */
export function unclear(end: Refused): Refused {
  return end.refusal === "not-sent" ? end : { ...end, outcome: end.refusal === "not-owner" ? "no" : "info" };
}

/** Until when an extended lease is good, which only an extension changes. */
export function validity(verb: string, held: Held): Pick<Ended, "validUntilMs"> {
  return verb === "extend" ? { validUntilMs: held.validUntilMs() } : {};
}

/** When the server's word for it came, of what is asked for by a request of its own. */
export function answer(
  verb: "extend" | "release" | "downgrade",
  part: Pick<Part, "answered">,
): Pick<Ended, "answeredMs"> {
  const answeredMs = verb === "downgrade" ? undefined : part.answered?.(verb);
  return answeredMs === undefined ? {} : { answeredMs };
}

/**
 * A signal that aborts after the given time.
 *
 * @returns the signal, and `end`, which returns the time of the abort, if any, and prevents a later one
 */
export function abortAfter(abortMs: number): { readonly signal: AbortSignal; end(): number | undefined } {
  const controller = new AbortController();
  let atMs: number | undefined;
  const timer = setTimeout(() => {
    atMs = monotonicMs();
    controller.abort(new Error("nobody waits for it any more"));
  }, abortMs);
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      return atMs;
    },
  };
}

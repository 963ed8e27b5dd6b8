/** Converts the end of a call to the fields of its record. */
import type { Held, Part, Refused } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { Ended } from "./recorder.js";

/** Whether the call did not succeed. */
export function isRefused(end: object): end is Refused {
  return "outcome" in end;
}

/** The outcome of a call that did not succeed. */
export function endOf({ outcome, refusal }: Refused): Omit<Ended, "returnMs"> {
  return outcome === "info" || refusal === undefined ? { outcome: "info" } : { outcome, refusal };
}

/** For a multi-lock: it is unknown which member refused, so no member can be recorded as busy. */
export function whole(end: Refused): Refused {
  return end.refusal === "busy" ? { ...end, refusal: "gave-up" } : end;
}

/** For one of several locks: the refusal of one says nothing about the others. */
export function unclear(end: Refused): Refused {
  return end.refusal === "not-sent" ? end : { ...end, outcome: end.refusal === "not-owner" ? "no" : "info" };
}

/** When the validity of an extended lease ends. Only an extension changes that. */
export function validity(verb: string, held: Held): Pick<Ended, "validUntilMs"> {
  return verb === "extend" ? { validUntilMs: held.validUntilMs() } : {};
}

/** When the server's reply arrived, for operations that send their own request. */
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
    controller.abort(new Error("the caller aborted the wait"));
  }, abortMs);
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      return atMs;
    },
  };
}

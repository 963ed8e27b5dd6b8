/**
 * The responses to requests that are not handled: problem details as in RFC 9457. They never contain data from the
 * request.
 */

/** A whole response. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

/** Returns headers by name, as Node accepts them. A header with several values has an array. */
export function grouped(headers: Answer["headers"]): Record<string, string | string[]> {
  const values = new Map<string, string[]>();
  for (const [name, value] of headers) values.set(name, [...(values.get(name) ?? []), value]);
  return Object.fromEntries(Array.from(values, ([name, all]) => [name, all.length === 1 ? (all[0] ?? "") : all]));
}

/** Why a request is not handled. */
export type Problem =
  | "missing"
  | "malformed"
  | "too-large"
  | "unavailable"
  | "mismatch"
  | "running"
  | "blocked"
  | "result-unavailable";

interface Text {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
}

const TEXTS: Readonly<Record<Problem, Text>> = {
  missing: {
    status: 400,
    title: "Idempotency-Key is missing",
    detail: "This request needs the header Idempotency-Key, with a value that is new for each new request.",
  },
  malformed: {
    status: 400,
    title: "Idempotency-Key is malformed",
    detail:
      "Send the header Idempotency-Key exactly once, with 1 to 255 characters. A value in double quotes is always accepted.",
  },
  "too-large": {
    status: 413,
    title: "The body of the request is too large",
    detail: "The request was not processed, because its body is too large for an idempotent request.",
  },
  unavailable: {
    status: 503,
    title: "Idempotency is temporarily unavailable",
    detail: "The request was not processed. Retry it later with the same Idempotency-Key.",
  },
  mismatch: {
    status: 422,
    title: "Idempotency-Key was used for a different request",
    detail: "This Idempotency-Key belongs to a request with different content. Use a new one for a new request.",
  },
  running: {
    status: 409,
    title: "The first request is still being processed",
    detail: "A request with this Idempotency-Key is still being processed. Retry it later to get its response.",
  },
  blocked: {
    status: 409,
    title: "The outcome of the first request is unknown",
    detail:
      "Requests with this Idempotency-Key are not processed until an operator has resolved it. Before you retry with a new key, check whether the first request took effect.",
  },
  "result-unavailable": {
    status: 409,
    title: "The response to the first request was not kept",
    detail:
      "The request with this Idempotency-Key was processed, but its response was not kept. It will not be processed again.",
  },
};

/**
 * Returns the response for a problem.
 *
 * @param retryAfterS  when to retry, in seconds; undefined if a retry does not help
 */
export function problemAnswer(problem: Problem, retryAfterS?: number): Answer {
  const { status, title, detail } = TEXTS[problem];
  const body = { type: `urn:holdfast:idempotency:${problem}`, title, status, detail };
  const retryAfter = retryAfterS === undefined ? [] : [["retry-after", String(retryAfterS)] as const];
  return {
    status,
    headers: [["content-type", "application/problem+json"], ...retryAfter],
    body: Buffer.from(JSON.stringify(body)),
  };
}

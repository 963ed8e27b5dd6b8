/** Errors that are sent as HTTP responses. */
import type { Problem } from "./api.js";

/** Thrown by request handlers; the router sends it as `application/problem+json`. */
export class HttpProblem extends Error {
  override readonly name = "HttpProblem";
  readonly status: number;
  readonly code: Problem["code"];
  /** Additional fields: the current holder, the permits, the state of the store, whether an action may have run. */
  readonly facts: Partial<Pick<Problem, "holder" | "permits" | "store" | "mayHaveRun">>;
  readonly headers: Readonly<Record<string, string>>;

  /** @param detail  one or two sentences for the user; no secrets */
  constructor(
    status: number,
    code: Problem["code"],
    detail: string,
    more: { readonly facts?: HttpProblem["facts"]; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.facts = more.facts ?? {};
    this.headers = more.headers ?? {};
  }

  /** The response body. */
  toJSON(): Problem {
    const { status, code, message: detail, facts } = this;
    return { type: "about:blank", title: TITLES[status] ?? "Error", status, detail, code, ...facts };
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
};

/** The error for an invalid request; `detail` names the field and the allowed values. */
export function badRequest(detail: string): HttpProblem {
  return new HttpProblem(400, "bad-request", detail);
}

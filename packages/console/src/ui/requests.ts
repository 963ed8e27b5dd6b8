/** Requests to the console's server. */
import { type ActionAnswer, CSRF_HEADER, type Problem, type SessionAnswer, type Stamped } from "../api.js";
import { setServerTime } from "./clock.js";
import { Store } from "./store.js";

/** The session; undefined until the server has sent it. */
export const session: Store<SessionAnswer | undefined> = new Store<SessionAnswer | undefined>(undefined);

/** A failed request. `problem` is the server's error; undefined if there was no response. */
export class RequestError extends Error {
  readonly problem: Problem | undefined;

  constructor(message: string, problem?: Problem) {
    super(message);
    this.problem = problem;
  }
}

/** @throws RequestError */
export function get<Answer extends Stamped>(
  path: string,
  params: Readonly<Record<string, string | undefined>> = {},
): Promise<Answer> {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (value !== undefined && value !== "") query.set(key, value);
  return send(query.size === 0 ? path : `${path}?${query.toString()}`, { method: "GET" });
}

/** @throws RequestError  also 409 `stale`: the page was out of date */
export function post<Answer extends Stamped>(path: string, body: object): Promise<Answer> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  const csrf = session.value?.csrf;
  if (csrf !== undefined && csrf !== null) headers[CSRF_HEADER] = csrf;
  return send(path, { method: "POST", headers, body: JSON.stringify(body) });
}

/** Runs an action: `release`, `pause` and so on. @throws RequestError */
export function act(action: string, body: object): Promise<ActionAnswer> {
  return post<ActionAnswer>(`api/actions/${action}`, body);
}

/** Loads the session. @throws RequestError */
export async function refreshSession(): Promise<void> {
  session.set(await get<SessionAnswer>("api/session"));
}

async function send<Answer extends Stamped>(path: string, init: RequestInit): Promise<Answer> {
  let response: Response;
  try {
    // Relative to the document, whose path is the base path.
    response = await fetch(path, { ...init, credentials: "same-origin", cache: "no-store", redirect: "error" });
  } catch {
    throw new RequestError(
      "The console cannot be reached. It may have stopped, the network may be down, or you may have to sign in again.",
    );
  }
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const answer: unknown = isJson ? await response.json().catch(() => undefined) : undefined;
  if (response.ok && answer !== undefined) {
    setServerTime((answer as Answer).atMs);
    return answer as Answer;
  }
  const problem = answer as Problem | undefined;
  // A 401 from the login request itself means a wrong token, which the form reports.
  if (response.status === 401 && path !== "api/login") refreshSession().catch(() => undefined);
  throw new RequestError(problem?.detail ?? `The console replied with status ${response.status}.`, problem);
}

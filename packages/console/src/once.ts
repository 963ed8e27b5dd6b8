/** The page for `once` calls: lists them, and resolves calls whose outcome is unknown. */

import { inspectOnce, ONCE_STATES, type OnceEntry, type OnceState, resolveOnce, surveyOnce } from "@holdfast/recipes";
import { UnsupportedError } from "holdfast";
import type { Viewer } from "./access.js";
import { type Ask, audited, type Done } from "./action.js";
import type { OnceRow } from "./api/once.js";
import type { Backend } from "./backend.js";
import type { Core } from "./core.js";
import type { Exchange } from "./exchange.js";
import { textOf, wholeOf as wholeField } from "./fields.js";
import { wholeOf } from "./history.js";
import { badRequest, HttpProblem } from "./problem.js";
import { sendJson } from "./respond.js";
import { clientIdOf } from "./views.js";
import { Visibility } from "./visibility.js";

const MOST_VALUE_BYTES = 65_536;

/** GET api/once */
export async function readOnce({ reader, link }: Core, { res, query }: Exchange, viewer: Viewer): Promise<void> {
  const limit = wholeOf("limit", query.get("limit"), 200, 1_000);
  const cursor = query.get("cursor") || undefined;
  const pattern = query.get("q") || undefined;
  const state = (query.get("state") || undefined) as OnceState | undefined;
  if (state !== undefined && !ONCE_STATES.includes(state))
    throw badRequest(`state must be one of ${ONCE_STATES.join(", ")}.`);
  const page = await link.use(async ({ holdfast }) => {
    try {
      return await surveyOnce(holdfast, {
        limit,
        ...(cursor === undefined ? {} : { cursor }),
        // Without wildcards, the text matches any part of the key.
        ...(pattern === undefined ? {} : { pattern: /[*?[]/.test(pattern) ? pattern : `*${pattern}*` }),
        ...(state === undefined ? {} : { states: [state] }),
      });
    } catch (error) {
      if (error instanceof UnsupportedError) return undefined;
      if (error instanceof TypeError || error instanceof RangeError) throw badRequest(error.message);
      throw error;
    }
  });
  const seen = await new Visibility(viewer).among(page?.calls ?? [], nameOf);
  sendJson(res, {
    ...{ v: 1, atMs: reader.nowMs(), rows: seen.map(rowOf) },
    ...{ nextCursor: page?.nextCursor ?? null, isKept: page !== undefined },
  });
}

/** POST api/actions/resolve-once */
export async function resolve(backend: Backend, ask: Ask): Promise<Done> {
  const { fields } = ask;
  const key = textOf(fields, "key", 255);
  const scope = fields.scope === null ? undefined : textOf(fields, "scope", 255);
  const token = wholeField(fields, "token", Number.MAX_SAFE_INTEGER);
  const how = howOf(fields);
  const name = nameOf({ key, scope });
  return audited(ask, "resolve", { call: name }, token, async () => {
    const scoped = scope === undefined ? {} : { scope };
    const call = await inspectOnce(backend.holdfast, key, scoped);
    if (call?.state !== "blocked" || call.token !== token || !(await resolveOnce(backend.holdfast, key, how, scoped))) {
      const now = call === undefined ? "not on record" : call.state;
      const detail = `${name} is not the blocked call that the page showed: it is ${now}. Nothing was done.`;
      throw new HttpProblem(409, "stale", detail);
    }
    const after = how === "release" ? "the next caller runs it" : "callers get the value that was given";
    return { message: `Resolved ${name}: ${after}.`, place: undefined };
  });
}

function howOf({ how, value }: Ask["fields"]): "release" | { readonly value: unknown } {
  if (how === "release") return how;
  if (how !== "done") throw badRequest('how must be "release" or "done".');
  if (typeof value !== "string" || Buffer.byteLength(value) > MOST_VALUE_BYTES)
    throw badRequest(`value must be a string of JSON, at most ${MOST_VALUE_BYTES} bytes.`);
  try {
    return { value: JSON.parse(value) as unknown };
  } catch {
    throw badRequest('value must be JSON, such as null, 5, "a string" or {"paid":true}.');
  }
}

/** The name of a call as shown to users and as passed to `authorize`. */
function nameOf({ key, scope }: Pick<OnceEntry, "key" | "scope">): string {
  return scope === undefined ? key : `${scope}/${key}`;
}

function rowOf({ key, scope, state, attempt, token, firstAtMs, sinceAtMs, endedAtMs, holder }: OnceEntry): OnceRow {
  return {
    id: JSON.stringify([scope ?? null, key]),
    ...{ key, scope: scope ?? null, state, attempt, token, firstAtMs, sinceAtMs, endedAtMs: endedAtMs ?? null },
    holder:
      holder === undefined
        ? null
        : {
            host: holder.host ?? null,
            pid: holder.pid ?? null,
            app: holder.clientName ?? null,
            clientId: clientIdOf(holder.owner),
          },
  };
}

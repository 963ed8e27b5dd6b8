/** Lists the recorded calls page by page, for operators and for jobs that reconcile blocked calls. */

import { type Holdfast, UnsupportedError } from "holdfast";
import {
  checkKnown,
  checkWhole,
  cursorText,
  eachOf,
  type Glob,
  identitiesOf,
  KeyScan,
  type Place,
  placeOf,
  readCursor,
  readGlob,
  show,
  unescaped,
} from "holdfast/internal";
import { nameOf, partsOf } from "../names.js";
import { inspection, type OnceInspection } from "./inspect-once.js";
import { OnceProtocol } from "./protocol.js";

/** A snapshot of one call. */
export interface OnceEntry extends OnceInspection {
  /** The `key` of the call. */
  readonly key: string;
  /** The `scope` of the call, if it has one. */
  readonly scope: string | undefined;
}

/** State of a call. */
export type OnceState = OnceInspection["state"];

/** All states of a call. */
export const ONCE_STATES: readonly OnceState[] = [
  "running",
  "abandoned",
  "done",
  "failed",
  "bare",
  "blocked",
  "released",
];

/** Options of `surveyOnce`. */
export interface OnceSurveyOptions {
  /** Glob pattern for keys, in the syntax of SCAN, such as `charge:*`. @default all keys */
  readonly pattern?: string | undefined;
  /** Only calls of this scope. @default all calls, with and without a scope */
  readonly scope?: string | undefined;
  /** Only calls in these states. @default all states */
  readonly states?: readonly OnceState[] | undefined;
  /** Size of a page, as in `survey` of `holdfast/admin`. Whole number, 1 to 10,000. @default 200 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. @default the first page */
  readonly cursor?: string | undefined;
}

/** One page of calls. */
export interface OnceSurvey {
  /** In no particular order. A call may appear twice, as with SCAN. */
  readonly calls: readonly OnceEntry[];
  /** Pass it as `cursor` for the next page; undefined on the last page. */
  readonly nextCursor: string | undefined;
  /** Number of servers that have not answered since the first page. Their calls are missing. */
  readonly unreachable: number;
}

/** Maximum number of SCAN steps for one page; each step looks at 2,000 keys. */
const MOST_STEPS = 50;
/** Maximum number of records that are read concurrently. */
const AT_ONCE = 50;

/** The first value that is no state, for the error message. */
function wrongIn(states: unknown): string {
  if (!Array.isArray(states)) return show(states);
  return states.length === 0 ? "an empty array" : show(states.find((state) => !ONCE_STATES.includes(state)));
}

/**
 * Returns one page of the recorded calls. Read-only. Uses SCAN on every primary, never KEYS, and reads no recorded
 * values.
 *
 * @throws StoreError        no server replied
 * @throws ClosedError       this Holdfast was closed
 * @throws UnsupportedError  this Holdfast uses several independent servers, where `once` is not available
 * @throws TypeError, RangeError  an invalid option; nothing was sent
 */
export async function surveyOnce(holdfast: Holdfast, options: OnceSurveyOptions = {}): Promise<OnceSurvey> {
  const known = checkKnown<OnceSurveyOptions>(options, ["pattern", "scope", "states", "limit", "cursor"]);
  const { pattern, scope, states = ONCE_STATES, limit = 200, cursor } = known;
  const glob = pattern === undefined ? undefined : readGlob(pattern);
  if (scope !== undefined && typeof scope !== "string")
    throw new TypeError(`scope must be a string; got ${show(scope)}`);
  if (!Array.isArray(states) || states.length === 0 || !states.every((state) => ONCE_STATES.includes(state)))
    throw new TypeError(`states must be a non-empty array of ${ONCE_STATES.join(", ")}; got ${wrongIn(states)}`);
  checkWhole("limit", limit, 1, 10_000);
  let progress = readCursor(cursor);
  const place = placeOf(holdfast);
  if (place.servers !== undefined)
    throw new UnsupportedError(
      place.prefix,
      "once does not work with several independent servers: it needs one server, a cluster, or Sentinel.",
    );
  const identities = identitiesOf(place);
  const scan = new KeyScan(place, {
    shape: ":once:*{*",
    kinds: ["once"],
    text: glob?.literal ?? "",
    includeFree: false,
  });
  const calls = new Map<string, OnceEntry>();
  for (let step = 0; step < MOST_STEPS && !progress.isOver && calls.size < limit; step += 1) {
    const page = await scan.page(progress, limit - calls.size);
    progress = page.progress;
    const found = namesIn(page.rests, glob, scope);
    for (const entry of await eachOf(found, AT_ONCE, (one) => entryOf(place, identities, one))) {
      if (entry !== undefined && states.includes(entry.state)) calls.set(nameOf(entry.scope, entry.key), entry);
    }
  }
  return { calls: [...calls.values()], nextCursor: cursorText(progress), unreachable: progress.unreachable };
}

type Named = Pick<OnceEntry, "key" | "scope">;

function namesIn(rests: readonly string[], glob: Glob | undefined, scope: string | undefined): Named[] {
  return rests.flatMap((rest) => {
    const [, escaped] = /^once:\{(.+)\}$/s.exec(rest) ?? [];
    const parts = escaped === undefined ? undefined : partsOf(unescaped(escaped));
    const isWanted =
      parts !== undefined && glob?.matches(parts.key) !== false && (scope === undefined || parts.scope === scope);
    return isWanted ? [parts] : [];
  });
}

async function entryOf(
  { session, prefix }: Place,
  identities: ReturnType<typeof identitiesOf>,
  { key, scope }: Named,
): Promise<OnceEntry | undefined> {
  const protocol = new OnceProtocol({ session, prefix, name: nameOf(scope, key), keepMs: 0, fingerprint: "" });
  const seen = await inspection(identities, protocol);
  return seen === undefined ? undefined : { key, scope, ...seen };
}

/** The history, for pages and as CSV. */
import { HISTORY_OUTCOMES, type HistoryEntry, readHistory } from "holdfast/admin";
import { searchHistory } from "holdfast/internal";
import type { HistoryAnswer, HistoryOutcome, HistoryRow } from "./api.js";
import type { Backend } from "./backend.js";
import { badRequest } from "./problem.js";
import type { StoreLink } from "./store-link.js";
import { publicOwner, type ViewContext } from "./views.js";
import type { Visibility } from "./visibility.js";

/** Maximum number of entries on the page of one lock. */
const OF_A_LOCK = 200;
const MOST = 10_000;
const A_DAY_MS = 86_400_000;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Which entries to list. */
export interface HistoryQuery {
  readonly name: string | undefined;
  /** Part of the name, in upper or lower case. */
  readonly part: string | undefined;
  readonly kind: string | undefined;
  readonly sinceMs: number;
  readonly outcome: HistoryOutcome | undefined;
  readonly limit: number;
}

/** Parses the query of a request. @throws HttpProblem 400 */
export function historyQuery(query: URLSearchParams): HistoryQuery {
  const outcome = query.get("outcome") || undefined;
  const known = HISTORY_OUTCOMES.find((one) => one === outcome);
  if (outcome !== undefined && known === undefined)
    throw badRequest(`outcome must be one of ${HISTORY_OUTCOMES.join(", ")}.`);
  return {
    name: nameOf(query, "name"),
    part: nameOf(query, "part"),
    kind: query.get("kind") || undefined,
    sinceMs: sinceOf(query.get("since") ?? ""),
    outcome: known,
    limit: wholeOf("limit", query.get("limit"), 200, MOST),
  };
}

function nameOf(query: URLSearchParams, field: "name" | "part"): string | undefined {
  const text = query.get(field) || undefined;
  if (text !== undefined && Buffer.byteLength(text) > 512) throw badRequest(`${field} must be at most 512 bytes.`);
  return text;
}

/** A pattern for names that contain this text, in upper or lower case. */
function containing(part: string): string {
  const literal = part.replace(/[\\*?[\]]/g, "\\$&");
  return `*${literal.replace(/[a-z]/gi, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`)}*`;
}

/** An integer of a query, 1 to `most`. @throws HttpProblem 400 */
export function wholeOf(field: string, text: string | null, otherwise: number, most: number): number {
  if (text === null || text === "") return otherwise;
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > most) throw badRequest(`${field} must be a whole number, 1 to ${most}.`);
  return number;
}

/**
 * The matching entries that the visitor may see, newest first. If the first read finds too few of them, because many
 * have another kind or are hidden from the visitor, a second read gets as many entries as possible.
 *
 * @throws HttpProblem 503  Redis is down; also errors from the library
 */
export async function readRows(
  link: StoreLink,
  { name, part, kind, sinceMs, outcome, limit }: HistoryQuery,
  { context, visibility }: { readonly context: ViewContext; readonly visibility: Visibility },
): Promise<Pick<HistoryAnswer, "rows" | "isCut">> {
  for (let most = limit; ; most = MOST) {
    const { entries, isComplete } = await link.use(({ holdfast }) =>
      searchHistory(holdfast, {
        sinceMs,
        limit: most,
        ...(name === undefined ? {} : { name }),
        ...(part === undefined ? {} : { pattern: containing(part) }),
        ...(outcome === undefined ? {} : { outcome }),
      }),
    );
    const ofKind = kind === undefined ? entries : entries.filter((entry) => entry.kind === kind);
    const seen = await visibility.among(ofKind, (entry) => entry.name, limit + 1);
    if (!isComplete && seen.length < limit && most < MOST) continue;
    const rows = seen.slice(0, limit).map((entry) => historyRow(entry, context));
    return { rows, isCut: !isComplete || seen.length > limit };
  }
}

/** The entries of one lock, for its page and its timeline. @throws errors from the library */
export async function readLockHistory(
  { holdfast }: Backend,
  name: string,
  context: ViewContext,
): Promise<readonly HistoryRow[]> {
  const entries = await readHistory(holdfast, { name, sinceMs: 7 * A_DAY_MS, limit: OF_A_LOCK });
  return entries.map((entry) => historyRow(entry, context));
}

/**
 * The last line of a CSV file if entries are missing. The note is in the file because people who open the file do not
 * see the rest of the response.
 */
const INCOMPLETE = "Incomplete: more events match than this file has. Filter by name or outcome to get the others.";

/** The entries as CSV. A cell that begins like a formula is turned into text, because names are untrusted. */
export function csvOf({ rows, isCut }: Pick<HistoryAnswer, "rows" | "isCut">): string {
  const columns = [
    ...(["writtenAtMs", "name", "kind", "outcome", "host", "pid", "app", "token", "waitedMs", "heldMs"] as const),
    ...(["label", "reason", "by", "owner"] as const),
  ];
  const lines = rows.map((row) =>
    columns.map((column) => cell(column === "writtenAtMs" ? new Date(row.writtenAtMs).toISOString() : row[column])),
  );
  // Strict CSV parsers expect this line to have as many cells as the others.
  const last = isCut ? [columns.map((_, at) => (at === 0 ? INCOMPLETE : ""))] : [];
  return [columns.map((column) => (column === "writtenAtMs" ? "when" : column)), ...lines, ...last]
    .map((line) => `${line.join(",")}\r\n`)
    .join("");
}

function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function historyRow(entry: HistoryEntry, { redact }: ViewContext): HistoryRow {
  const { owner, token, atMs } = entry;
  return {
    id: `${entry.kind}:${entry.name}:${owner === undefined ? "" : publicOwner(owner, redact)}:${token ?? ""}:${atMs}:${entry.outcome}`,
    writtenAtMs: atMs,
    kind: entry.kind,
    name: entry.name,
    outcome: entry.outcome,
    owner: owner === undefined ? null : publicOwner(owner, redact),
    host: entry.host ?? null,
    pid: entry.pid ?? null,
    app: entry.clientName ?? null,
    token: token ?? null,
    waitedMs: entry.waitedMs ?? null,
    heldMs: entry.heldMs ?? null,
    sinceAtMs: entry.grantedAtMs ?? null,
    label: redact.has("label") ? null : (entry.label ?? null),
    reason: entry.reason ?? null,
    by: entry.by ?? null,
  };
}

function sinceOf(text: string): number {
  if (text === "") return A_DAY_MS;
  const [, amount = "", unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(amount) * (UNITS[unit] ?? 0);
  if (ms >= 1 && ms <= 365 * A_DAY_MS) return ms;
  throw badRequest("since must be a duration such as 30m, 24h or 7d, up to 365d.");
}

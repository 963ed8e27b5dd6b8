/**
 * The filter box: `name:order kind:mutex holder:ci-7 label:release token:12 waiting paused gone late partial over:5m`,
 * or a bare word, which matches name, holder or label. A row must match all parts. The functions are pure, so the page
 * and the server can share them.
 */
import type { HolderView, LockRow } from "./api.js";

/** Whether a row matches. */
export type RowFilter = (row: LockRow, nowMs: number) => boolean;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a filter. A part that cannot be parsed is treated as a search word, so that there is no error while the user
 * types.
 */
export function readFilter(text: string): RowFilter {
  const parts = text
    .split(/\s+/)
    .filter((part) => part !== "")
    .map(partOf);
  return (row, nowMs) => parts.every((fits) => fits(row, nowMs));
}

function partOf(part: string): RowFilter {
  const [, field = "", wanted = ""] = /^(name|kind|holder|label|state|token|over):(.+)$/.exec(part) ?? [];
  const word = wanted.toLowerCase();
  switch (field) {
    case "name":
      return ({ name }) => has(name, word);
    case "kind":
      return ({ kind }) => has(kind, word);
    case "state":
      return ({ state }) => has(state, word);
    case "label":
      return ({ label }) => has(label, word);
    case "token":
      return ({ token, holders }) =>
        [token, ...holders.map((holder) => holder.token)].some((one) => String(one) === word);
    case "holder":
      return ({ holders, pause }) => holders.some((holder) => isNamed(holder, word)) || has(pause?.by ?? null, word);
    case "over": {
      const ms = durationOf(word);
      return ({ sinceAtMs }, nowMs) => sinceAtMs !== null && ms !== undefined && nowMs - sinceAtMs > ms;
    }
    default:
      return wordFilter(part.toLowerCase());
  }
}

function wordFilter(word: string): RowFilter {
  if (word === "waiting") return ({ waiterCount }) => waiterCount > 0;
  if (word === "paused") return ({ pause }) => pause !== null;
  if (word === "gone") return ({ goneCount }) => goneCount > 0;
  if (word === "partial") return ({ needsTopology }) => needsTopology !== null;
  if (word === "late") return ({ holders }, nowMs) => holders.some((holder) => isLate(holder, nowMs));
  return ({ name, label, holders }) =>
    has(name, word) || has(label, word) || holders.some((holder) => isNamed(holder, word));
}

/**
 * The initial lease length of a claim: the third part of its id, see packages/holdfast/docs/keys.md. Undefined for
 * foreign holders.
 */
export function leaseMsOf(owner: string): number | undefined {
  const [, leaseMs] = /^[\w-]{16}\/\d+\/(\d+)\//.exec(owner) ?? [];
  return leaseMs === undefined ? undefined : Number(leaseMs);
}

/**
 * Whether a renewal is late. Leases are renewed after a third of their length, so at least two thirds should be left.
 */
function isLate({ owner, expiresAtMs }: HolderView, nowMs: number): boolean {
  const leaseMs = leaseMsOf(owner);
  return expiresAtMs !== null && leaseMs !== undefined && expiresAtMs - nowMs < leaseMs / 2;
}

function isNamed({ host, pid, app, owner }: HolderView, word: string): boolean {
  return has(app, word) || has(owner, word) || has(host === null ? null : `${host}/${pid ?? ""}`, word);
}

function has(text: string | null, word: string): boolean {
  return text?.toLowerCase().includes(word) === true;
}

function durationOf(text: string): number | undefined {
  const [, amount = "", unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  return amount === "" ? undefined : Number(amount) * (UNITS[unit] ?? 1_000);
}

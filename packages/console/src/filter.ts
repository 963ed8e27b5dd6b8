/**
 * The filter box: `name:order kind:mutex holder:ci-7 label:release token:12 waiting paused gone late partial over:5m`, or a bare word, which any of
 * name, holder and label may have in it. All parts must fit. Pure, so that the page can use it as well as the server.
 */
import type { HolderView, LockRow } from "./api.js";

/** Whether a row fits. */
export type RowFilter = (row: LockRow, nowMs: number) => boolean;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a filter. What cannot be read is searched for as it is: a box that complains while one types is of no use. */
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
 * How long the lease of a claim is when it begins: the third part of its id, as packages/holdfast/docs/keys.md writes it.
 * Undefined for holders that are not ours.
 */
export function leaseMsOf(owner: string): number | undefined {
  const [, leaseMs] = /^[\w-]{16}\/\d+\/(\d+)\//.exec(owner) ?? [];
  return leaseMs === undefined ? undefined : Number(leaseMs);
}

/** Whether a renewal is late: a lease is renewed at a third of its length, so two thirds are left if it is on time. */
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

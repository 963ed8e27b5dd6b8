/** The list of all locks: holders, durations and waiters. */
import type { JSX } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import type { LockRow, LocksAnswer } from "../../api.js";
import { leaseMsOf, readFilter } from "../../filter.js";
import { nowAtMs } from "../clock.js";
import { whole } from "../format.js";
import type { LocksKnown } from "../known.js";
import { known, liveness } from "../live.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { Deadlocks } from "../parts/deadlocks.js";
import { LeaseLeft } from "../parts/lease-left.js";
import { Loading, Missing, StillReading } from "../parts/loading.js";
import { Spark } from "../parts/spark.js";
import { HolderCell, LockName, lockHref, Maybe, None, Outside, Quantity, Since } from "../parts/words.js";
import { get } from "../requests.js";
import { amend, route } from "../route.js";
import { ENOUGH, matchText, type Search, search as searchAll, UNREAD } from "../search.js";
import { useStore } from "../store.js";
import { talliesOf } from "../summary.js";

const END = Number.MAX_SAFE_INTEGER;

const COLUMNS: readonly Column<LockRow>[] = [
  { id: "name", title: "Name", cell: (row) => <LockName row={row} />, sortBy: ({ name }) => name },
  { id: "kind", title: "Kind", width: "7.5rem", fromPx: 760, cell: (row) => kindText(row), sortBy: ({ kind }) => kind },
  { id: "holder", title: "Holder", width: "11.5rem", fromPx: 760, cell: (row) => <HolderCell row={row} /> },
  {
    id: "since",
    title: "For",
    width: "5rem",
    fromPx: 760,
    isNumber: true,
    cell: ({ sinceAtMs }) => <Since atMs={sinceAtMs} />,
    // Negated so that ascending order shows the shortest duration first.
    sortBy: ({ sinceAtMs }) => (sinceAtMs === null ? -END : -sinceAtMs),
  },
  {
    id: "left",
    title: "Lease left",
    width: "6rem",
    isNumber: true,
    cell: (row) => <RowLease row={row} />,
    sortBy: ({ expiresAtMs }) => expiresAtMs ?? END,
  },
  {
    id: "token",
    title: "Token",
    width: "9.5rem",
    fromPx: 1_120,
    isNumber: true,
    cell: ({ token }) => (token === null ? <None /> : <span class="code">{String(token)}</span>),
  },
  {
    id: "waiters",
    title: "Waiters",
    width: "5rem",
    isNumber: true,
    cell: ({ waiterCount }) => <Quantity n={waiterCount} />,
    sortBy: ({ waiterCount }) => waiterCount,
  },
  {
    id: "contention",
    title: "Contention",
    width: "6.75rem",
    fromPx: 1_000,
    cell: ({ waiterSamples }) => <Spark points={waiterSamples} noun="waiters" />,
  },
  { id: "label", title: "Label", width: "8.5rem", fromPx: 1_200, cell: ({ label }) => <Maybe text={label} /> },
];

/** The page. */
export function LocksPage(): JSX.Element {
  const { locks } = useStore(known);
  const isPartial = locks?.isPartial === true;
  const { q = "", sort = "name" } = useStore(route).params;
  const isFiltered = q.trim() !== "";
  const fits = useMemo(() => readFilter(q), [q]);
  const search = useSearch(locks?.isCut === true && !isPartial && isFiltered ? q : "");
  if (locks === undefined) return <Loading what="locks" />;
  const followed = [...locks.rows.values()];
  // If the stream and the search both contain a lock, the stream has its newer state.
  const found = search === undefined ? [] : search.rows.filter(({ id }) => !locks.rows.has(id));
  const rows = isFiltered ? [...followed, ...found].filter((row) => fits(row, nowAtMs())) : followed;
  const unreachable = Math.max(locks.unreachable, search?.unreachable ?? 0);
  const isReading = isPartial || search?.isReading === true;
  const lockCount = search?.lockCount === null ? null : Math.max(followed.length, search?.lockCount ?? 0);
  const text = isFiltered
    ? matchText(rows.length, { lockCount, isReading, isCut: search?.isCut === true })
    : `${whole(followed.length)}${locks.isCut && !isPartial ? "+" : ""} ${followed.length === 1 ? "lock" : "locks"}${isPartial ? " so far" : ""}`;
  return (
    <>
      <FilterBox q={q} complaint={complaintOf(q)} text={text} isReading={isReading} />
      <Tallies rows={followed} locks={locks} q={q} />
      {isPartial && <StillReading lockCount={followed.length} />}
      <Missing extent={{ unreachable }} />
      <Deadlocks rows={followed} isCut={locks.isCut && !isPartial} />
      <Partial n={followed.filter(({ needsTopology }) => needsTopology !== null).length} isCut={locks.isCut} />
      <DataTable
        caption="Locks"
        isMain
        rows={rows}
        columns={COLUMNS}
        keyOf={({ id }) => id}
        hrefOf={lockHref}
        underline={(row) => (
          <>
            {row.kind} · <HolderCell row={row} />
          </>
        )}
        sort={sort}
        onSort={(next) => amend({ sort: next === "name" ? undefined : next })}
        isGrowing={isReading}
        empty={isReading ? <Loading what="locks" /> : <Empty q={q} isWhole={unreachable === 0} />}
      />
      {search?.isCut === true && <p class="note">More locks match. Narrow the filter to see them.</p>}
    </>
  );
}

function kindText({ kind, needsTopology }: LockRow): string {
  return needsTopology === null ? kind : `${kind}, partial`;
}

/** The note about locks that this console sees only in part, because they need other servers. */
function Partial({ n, isCut }: { readonly n: number; readonly isCut: boolean }): JSX.Element | null {
  if (n === 0) return null;
  return (
    <p class="note">
      {isCut && "At least "}
      {n === 1
        ? "1 lock needs another topology: this console sees only a part of it."
        : `${whole(n)} locks need another topology: this console sees only a part of them.`}{" "}
      <button type="button" class="small" onClick={() => amend({ q: "partial" })}>
        Show
      </button>
    </p>
  );
}

function RowLease({ row }: { readonly row: LockRow }): JSX.Element {
  const [first] = row.holders;
  if (first === undefined) return <None />;
  return <LeaseLeft endsAtMs={row.expiresAtMs ?? undefined} leaseMs={leaseMsOf(first.owner)} />;
}

interface FilterBoxProps {
  readonly q: string;
  readonly complaint: string | undefined;
  readonly text: string;
  readonly isReading: boolean;
}

/** The number of locks that are held, awaited, paused and gone; a click filters the list. */
function Tallies({ rows, locks: { isCut, isPartial }, q }: TalliesProps): JSX.Element {
  // While the locks are being read, a count of 0 means nothing yet.
  const tallies = talliesOf(rows).filter(({ n }) => n > 0 || !isPartial);
  return (
    <p class="tallies">
      {tallies.map((tally) => (
        <button
          key={tally.q}
          type="button"
          class="small"
          aria-pressed={q === tally.q}
          onClick={() => amend({ q: q === tally.q ? undefined : tally.q })}
        >
          {whole(tally.n)}
          {isCut && "+"} {tally.word}
        </button>
      ))}
    </p>
  );
}

interface TalliesProps {
  readonly rows: readonly LockRow[];
  readonly locks: LocksKnown;
  readonly q: string;
}

function FilterBox({ q, complaint, text, isReading }: FilterBoxProps): JSX.Element {
  const hintId = useId();
  return (
    <search class="filter-bar">
      <h1 class="hidden">Locks</h1>
      <label class="filter">
        <span class="hidden">Filter</span>
        <input
          type="search"
          data-filter
          value={q}
          placeholder="Filter   name:  kind:  holder:  waiting  over:5m"
          aria-describedby={hintId}
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => amend({ q: currentTarget.value })}
        />
        <span class="kbd" aria-hidden="true">
          /
        </span>
      </label>
      <p id={hintId} class={complaint === undefined ? "hidden" : "complaint"}>
        {complaint ??
          "Text in a name, holder or label; or name: kind: holder: label: state: token: waiting paused gone late partial over:5m. A lock must match all of them."}
      </p>
      <p class="count">{text}</p>
      <Announced text={text} when={isReading ? "" : q} />
    </search>
  );
}

/** Announces the count when the filter has a new result, not when a lock appears or disappears. */
function Announced({ text, when }: { readonly text: string; readonly when: string }): JSX.Element {
  const [said, say] = useState("");
  useEffect(() => {
    if (when === "") return undefined;
    const timer = setTimeout(() => say(text), 1_000);
    return () => clearTimeout(timer);
  }, [when]);
  return (
    <span class="hidden" aria-live="polite">
      {said}
    </span>
  );
}

function Empty({ q, isWhole }: { readonly q: string; readonly isWhole: boolean }): JSX.Element {
  if (q === "")
    return (
      <>
        <p class="strong">{isWhole ? "No lock is in use." : "No lock was found."}</p>
        <p>A lock appears here when a client holds it or waits for it.</p>
      </>
    );
  return (
    <>
      <p class="strong">
        No locks match <Outside text={q} isCode />.
      </p>
      <button type="button" onClick={() => amend({ q: undefined })}>
        Show all
      </button>
    </>
  );
}

/**
 * The error to show for a filter. Half-typed parts are not errors, but an invalid duration would silently hide every
 * lock.
 */
function complaintOf(q: string): string | undefined {
  const [, typed] = /(?:^|\s)over:(\S+)/.exec(q) ?? [];
  if (typed === undefined || /^\d+(\.\d*)?(ms?|s|h|d)?$/.test(typed)) return undefined;
  return "over: needs a duration, such as over:30s, over:5m or over:2h";
}

const ASK_AGAIN_MS = 5_000;
/** After a search, the pause is at least this many times as long as the search took. */
const REST = 3;
const TYPING_MS = 300;

/**
 * Searches all locks while `q` is not empty, and repeats a search a few seconds after it ends; undefined if `q` is
 * empty.
 */
function useSearch(q: string): Search | undefined {
  const [latest, setLatest] = useState<{ readonly q: string; readonly found: Search } | undefined>();
  useEffect(() => {
    if (q === "") return undefined;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async (): Promise<void> => {
      for await (const found of searchAll((cursor) =>
        get<LocksAnswer>("api/locks", { q, limit: String(ENOUGH), cursor }),
      )) {
        if (isOver) return;
        // A repeated search replaces a complete result only when it ends, so that the list does not shrink and grow.
        setLatest((before) => (found.isReading && isResult(before, q) ? before : { q, found }));
      }
    };
    const startAfter = (restMs: number): void => {
      if (isOver) return;
      const isIdle = (): boolean => liveness.value === "stopped" || document.hidden;
      timer = setTimeout(() => (isIdle() ? startAfter(restMs) : start()), restMs);
    };
    const start = (): void => {
      const begunMs = performance.now();
      const end = (): void => startAfter(Math.max(ASK_AGAIN_MS, REST * (performance.now() - begunMs)));
      // The top bar already shows when the server does not reply.
      run().then(end, end);
    };
    timer = setTimeout(start, TYPING_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [q]);
  if (q === "") return undefined;
  return latest?.q === q ? latest.found : UNREAD;
}

function isResult(latest: { readonly q: string; readonly found: Search } | undefined, q: string): boolean {
  return latest?.q === q && !latest.found.isReading;
}

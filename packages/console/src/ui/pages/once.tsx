/** The page for `once` calls: running, done, and blocked until someone resolves them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { OnceAnswer, OnceRow, OnceStateName } from "../../api/once.js";
import { plain } from "../../plain.js";
import { open, openDialog } from "../actions.js";
import { count, whole } from "../format.js";
import { liveness } from "../live.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { StateMark, type StateShape } from "../parts/icons.js";
import { Loading } from "../parts/loading.js";
import { At, None, Outside, Since, Who } from "../parts/words.js";
import { get, session } from "../requests.js";
import { ResolveDialog } from "../resolve-dialog.js";
import { amend, type Params, route } from "../route.js";
import { useStore } from "../store.js";

const STATES: Readonly<Record<OnceStateName, readonly [shape: StateShape, meaning: string]>> = {
  blocked: ["trouble", "its outcome is unknown"],
  running: ["held", "it is running"],
  abandoned: ["waiting", "its process is gone, and the next caller takes it over"],
  done: ["good", "its result is kept"],
  bare: ["good", "done, and its result was not kept"],
  failed: ["trouble", "its error is kept"],
  released: ["free", "the next caller runs it"],
};
/** Calls that need attention come first. */
const NAMES = Object.keys(STATES);
/** Polling interval. The calls are not part of the stream because there may be very many. */
const ASK_AGAIN_MS = 5_000;
const TYPING_MS = 300;

const COLUMNS: readonly Column<OnceRow>[] = [
  {
    id: "key",
    title: "Key",
    cell: (row) => (
      <span class="lock-name" title={plain(row.key)}>
        <State row={row} isWordHidden />
        <Outside text={row.key} isCode />
      </span>
    ),
    sortBy: ({ key }) => key,
  },
  {
    id: "scope",
    title: "Scope",
    width: "10rem",
    fromPx: 1_000,
    cell: ({ scope }) => (scope === null ? <None /> : <Outside text={scope} isCode />),
    sortBy: ({ scope }) => scope ?? "",
  },
  {
    id: "state",
    title: "State",
    width: "8rem",
    fromPx: 760,
    cell: (row) => row.state,
    sortBy: ({ state }) => NAMES.indexOf(state),
  },
  {
    id: "attempt",
    title: "Attempt",
    width: "5.5rem",
    fromPx: 760,
    isNumber: true,
    cell: ({ attempt }) => whole(attempt),
    sortBy: ({ attempt }) => -attempt,
  },
  {
    id: "age",
    title: "Started",
    width: "6rem",
    cell: ({ firstAtMs }) => <Since atMs={firstAtMs} />,
    sortBy: ({ firstAtMs }) => -firstAtMs,
  },
  { id: "ended", title: "Ended", width: "9rem", fromPx: 900, cell: ({ endedAtMs }) => <At atMs={endedAtMs} /> },
  {
    id: "holder",
    title: "Run by",
    width: "13rem",
    fromPx: 900,
    cell: ({ holder }) => (holder === null ? <None /> : <Who client={holder} />),
  },
];

const RESOLVE: Column<OnceRow> = {
  id: "resolve",
  title: "",
  width: "7rem",
  cell: (row) =>
    row.state === "blocked" && (
      <button
        type="button"
        class="small"
        aria-label={`Resolve ${plain(row.key)} …`}
        onClick={() => open(() => <ResolveDialog row={row} />)}
      >
        Resolve …
      </button>
    ),
};

/** The page. */
export function OncePage(): JSX.Element {
  const { q = "", state = "", sort = "state" } = useStore(route).params;
  const { rows, isCut, isKept, trouble, more } = useCalls({ q, state });
  const mayResolve = useStore(session)?.allow.includes("resolve") === true;
  return (
    <>
      <div class="page-head">
        <h1>Once</h1>
        {rows !== undefined && <p class="count">{`${count(rows.length, "call")}${isCut ? " so far" : ""}`}</p>}
      </div>
      <search class="filter-bar">
        <label class="filter">
          <span class="hidden">Key</span>
          <input
            type="search"
            data-filter
            value={q}
            placeholder="A part of the key, or a pattern such as charge:*"
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => amend({ q: currentTarget.value })}
          />
          <span class="kbd" aria-hidden="true">
            /
          </span>
        </label>
        <label>
          <span class="hidden">State</span>
          <select value={state} onChange={({ currentTarget }) => amend({ state: currentTarget.value })}>
            <option value="">all states</option>
            {Object.entries(STATES).map(([name, [, meaning]]) => (
              <option key={name} value={name} title={meaning}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {isCut && (
          <button type="button" onClick={more}>
            Show more
          </button>
        )}
      </search>
      {trouble !== undefined && <p class="explain warn">{trouble}</p>}
      {rows === undefined ? (
        trouble === undefined && <Loading what="calls" />
      ) : (
        <DataTable
          caption="Calls"
          isMain
          rows={rows}
          columns={mayResolve ? [...COLUMNS, RESOLVE] : COLUMNS}
          keyOf={({ id }) => id}
          underline={(row) => <State row={row} />}
          sort={sort}
          onSort={(next) => amend({ sort: next })}
          empty={<Empty isKept={isKept} isFiltered={q + state !== ""} isCut={isCut} />}
        />
      )}
    </>
  );
}

function State({ row, isWordHidden = false }: { readonly row: OnceRow; readonly isWordHidden?: boolean }): JSX.Element {
  const [shape, meaning] = STATES[row.state];
  if (isWordHidden) return <StateMark shape={shape} word={`${row.state}: ${meaning}`} />;
  return <span>{`${row.state}, attempt ${row.attempt}`}</span>;
}

interface EmptyProps {
  readonly isKept: boolean;
  readonly isFiltered: boolean;
  /** Whether there are keys that were not read yet. */
  readonly isCut: boolean;
}

function Empty({ isKept, isFiltered, isCut }: EmptyProps): JSX.Element {
  if (isCut)
    return (
      <>
        <p class="strong">No calls among the keys read so far.</p>
        <p>Redis has very many keys. To read on, press Show more.</p>
      </>
    );
  if (isFiltered)
    return (
      <>
        <p class="strong">No calls match.</p>
        <button type="button" onClick={() => amend({ q: undefined, state: undefined })}>
          Show all
        </button>
      </>
    );
  return (
    <>
      <p class="strong">
        {isKept ? "No call is on record." : "Calls are not recorded on several independent servers."}
      </p>
      <p>
        Programs that use <code>once</code> or an Idempotency-Key keep a record here for the time that they set.
      </p>
    </>
  );
}

interface Calls {
  readonly rows: readonly OnceRow[] | undefined;
  readonly isCut: boolean;
  readonly isKept: boolean;
  readonly trouble: string | undefined;
  more(): void;
}

/** All pages loaded so far, reloaded every few seconds. */
function useCalls(query: Params): Calls {
  const [answers, setAnswers] = useState<readonly OnceAnswer[] | undefined>();
  const [pages, setPages] = useState(1);
  const [trouble, setTrouble] = useState<string | undefined>();
  const dialog = useStore(openDialog);
  const key = JSON.stringify(query);
  useEffect(() => setPages(1), [key]);
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const read: OnceAnswer[] = [];
      let cursor: string | null = null;
      do {
        const next: OnceAnswer = await get<OnceAnswer>("api/once", { ...query, ...(cursor && { cursor }) });
        read.push(next);
        cursor = next.nextCursor;
      } while (cursor !== null && read.length < pages);
      if (isOver) return;
      setAnswers(read);
      setTrouble(undefined);
    };
    const showError = (error: unknown): void => {
      if (!isOver) setTrouble(error instanceof Error ? error.message : String(error));
    };
    const first = setTimeout(() => void ask().catch(showError), answers === undefined ? 0 : TYPING_MS);
    const again = setInterval(() => {
      if (liveness.value !== "stopped" && !document.hidden) void ask().catch(showError);
    }, ASK_AGAIN_MS);
    return () => {
      isOver = true;
      clearTimeout(first);
      clearInterval(again);
    };
  }, [key, pages, dialog === undefined]);
  const rows = answers === undefined ? undefined : unique(answers.flatMap((answer) => answer.rows));
  return {
    rows,
    isCut: answers?.at(-1)?.nextCursor != null,
    isKept: answers?.at(-1)?.isKept !== false,
    trouble,
    more: () => setPages(pages + 5),
  };
}

/** Removes duplicates: a call may appear on two pages. */
function unique(rows: readonly OnceRow[]): readonly OnceRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

/** The history page: how holds ended, and which runs were skipped. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { HistoryAnswer, HistoryOutcome } from "../../api.js";
import { count, whole } from "../format.js";
import { liveness } from "../live.js";
import { HistoryTable } from "../parts/history-table.js";
import { Loading } from "../parts/loading.js";
import { get } from "../requests.js";
import { amend, type Params, route } from "../route.js";
import { useStore } from "../store.js";

const OUTCOMES: readonly HistoryOutcome[] = [
  "released",
  "lost",
  "expired",
  "forced",
  "skipped",
  "paused",
  "resumed",
  "held",
];
const SPANS = ["1h", "6h", "24h", "7d"] as const;
const DEFAULT_SPAN = "24h";
/** Rows shown at first, and added with each press of the button. A thousand rows are 60,000 px high on a phone. */
const LINES = 100;
const LIMIT = "1000";
const CSV_LIMIT = 10_000;
/** The history is not part of the stream, so the page polls it. */
const ASK_AGAIN_MS = 5_000;
/**
 * After a slow response, the page waits longer, so that loading takes at most this share of the time unless
 * `LONGEST_REST_MS` limits the wait.
 */
const MOST_LOAD = 0.1;
const LONGEST_REST_MS = 60_000;
const TYPING_MS = 300;

/** The page. */
export function HistoryPage(): JSX.Element {
  const { name = "", outcome = "", since = DEFAULT_SPAN } = useStore(route).params;
  const { answer, trouble } = useHistory({ part: name, outcome, since });
  const [most, setMost] = useState(LINES);
  const filter = { ...(name && { part: name }), ...(outcome && { outcome }) };
  const csv = new URLSearchParams({ since, limit: String(CSV_LIMIT), ...filter });
  return (
    <>
      <div class="page-head">
        <h1>History</h1>
        {answer !== undefined && (
          <p class="count">
            {answer.isCut ? "the latest " : ""}
            {count(answer.rows.length, "event")}
          </p>
        )}
      </div>
      <search class="filter-bar">
        <label class="filter">
          <span class="hidden">Part of a name</span>
          <input
            type="search"
            data-filter
            value={name}
            placeholder="Part of a name"
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => amend({ name: currentTarget.value })}
          />
          <span class="kbd" aria-hidden="true">
            /
          </span>
        </label>
        <label>
          <span class="hidden">Outcome</span>
          <select value={outcome} onChange={({ currentTarget }) => amend({ outcome: currentTarget.value })}>
            <option value="">all outcomes</option>
            {OUTCOMES.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span class="hidden">How far back</span>
          <select value={since} onChange={({ currentTarget }) => amend({ since: currentTarget.value })}>
            {SPANS.map((one) => (
              <option key={one} value={one}>
                last {one}
              </option>
            ))}
          </select>
        </label>
        <a class="button" href={`api/history.csv?${csv.toString()}`} download="history.csv">
          CSV
        </a>
      </search>
      {answer?.isCut === true && (
        <p class="note">
          More events match than this page has. The CSV file has up to {whole(CSV_LIMIT)}. Filter by name or outcome to
          see others.
        </p>
      )}
      {trouble !== undefined && <p class="explain warn">{trouble}</p>}
      {answer === undefined ? (
        trouble === undefined && <Loading what="history" />
      ) : (
        <>
          <HistoryTable
            rows={answer.rows.slice(0, most)}
            hasNames
            isMain
            empty={<Empty answer={answer} isFiltered={name + outcome !== ""} />}
          />
          {answer.rows.length > most && (
            <p class="note">
              The latest {most} are shown.{" "}
              <button type="button" class="small" onClick={() => setMost(most + LINES)}>
                Show {LINES} more
              </button>
            </p>
          )}
        </>
      )}
    </>
  );
}

interface EmptyProps {
  readonly answer: HistoryAnswer;
  readonly isFiltered: boolean;
}

function Empty({ answer: { isCut }, isFiltered }: EmptyProps): JSX.Element {
  if (isCut) return <p class="strong">No events match among those that were read.</p>;
  if (isFiltered)
    return (
      <>
        <p class="strong">No events match in this period.</p>
        <button type="button" onClick={() => amend({ name: undefined, outcome: undefined })}>
          Show all
        </button>
      </>
    );
  return (
    <>
      <p class="strong">No events in this period.</p>
      <p>
        The history is written by <code>holdfast run</code>, <code>holdfast elect</code>, pauses, force-releases, and
        programs that use <code>recordHistory</code>.
      </p>
    </>
  );
}

function useHistory(query: Params): {
  readonly answer: HistoryAnswer | undefined;
  readonly trouble: string | undefined;
} {
  const [answer, setAnswer] = useState<HistoryAnswer | undefined>();
  const [trouble, setTrouble] = useState<string | undefined>();
  const key = JSON.stringify(query);
  useEffect(() => {
    let isOver = false;
    let isAsking = false;
    let restsUntilMs = 0;
    const ask = (): void => {
      const askedAtMs = performance.now();
      // Reading a large history can take longer than the polling interval.
      if (isAsking || askedAtMs < restsUntilMs) return;
      isAsking = true;
      get<HistoryAnswer>("api/history", { ...query, limit: LIMIT }).then(
        (next) => {
          isAsking = false;
          const tookMs = performance.now() - askedAtMs;
          restsUntilMs = askedAtMs + Math.min(tookMs / MOST_LOAD, LONGEST_REST_MS);
          if (isOver) return;
          setAnswer(next);
          setTrouble(undefined);
        },
        (error: unknown) => {
          isAsking = false;
          if (!isOver) setTrouble(error instanceof Error ? error.message : String(error));
        },
      );
    };
    const first = setTimeout(ask, answer === undefined ? 0 : TYPING_MS);
    const again = setInterval(() => {
      if (liveness.value !== "stopped" && !document.hidden) ask();
    }, ASK_AGAIN_MS);
    return () => {
      isOver = true;
      clearTimeout(first);
      clearInterval(again);
    };
  }, [key]);
  return { answer, trouble };
}

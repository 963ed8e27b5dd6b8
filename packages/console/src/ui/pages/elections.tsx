/** The elections page: who leads, for how long, and whether leaders change too often. */
import type { JSX } from "preact";
import type { ElectionView } from "../../api.js";
import { plain } from "../../plain.js";
import { open } from "../actions.js";
import { nowAtMs } from "../clock.js";
import { whole } from "../format.js";
import { known } from "../live.js";
import { ResignDialog } from "../other-dialogs.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { StateMark } from "../parts/icons.js";
import { KindHead, Loading } from "../parts/loading.js";
import { LockName, lockHref, Maybe, None, Quantity, Since, Who } from "../parts/words.js";
import { session } from "../requests.js";
import { amend, route } from "../route.js";
import { useStore } from "../store.js";

const DAY_MS = 86_400_000;

const COLUMNS: readonly Column<ElectionView>[] = [
  { id: "name", title: "Name", cell: ({ row }) => <LockName row={row} />, sortBy: ({ row }) => row.name },
  { id: "leader", title: "Leader", width: "14rem", fromPx: 760, cell: (election) => <Leader election={election} /> },
  {
    id: "value",
    title: "Value",
    width: "14rem",
    fromPx: 1_000,
    cell: ({ leader }) => <Maybe text={leader?.value ?? null} />,
  },
  {
    id: "term",
    title: "Term",
    width: "10rem",
    fromPx: 760,
    isNumber: true,
    cell: ({ leader }) => (leader === null ? <None /> : <span class="code">{String(leader.term)}</span>),
    sortBy: ({ leader }) => leader?.term ?? 0,
  },
  {
    id: "since",
    title: "For",
    width: "5.5rem",
    isNumber: true,
    cell: ({ leader }) => <Since atMs={leader?.sinceAtMs ?? null} />,
    sortBy: ({ leader }) => -(leader?.sinceAtMs ?? 0),
  },
  {
    id: "changes",
    title: "Changes, 24 h",
    width: "8.5rem",
    fromPx: 760,
    isNumber: true,
    cell: (election) => <Changes election={election} />,
    sortBy: ({ transitionsLastDay }) => transitionsLastDay ?? -1,
  },
  {
    id: "candidates",
    title: "Candidates",
    width: "7rem",
    fromPx: 760,
    isNumber: true,
    cell: ({ candidateCount }) => <Quantity n={candidateCount} />,
    sortBy: ({ candidateCount }) => candidateCount,
  },
];

const RESIGN: Column<ElectionView> = {
  id: "resign",
  title: "",
  width: "6.5rem",
  fromPx: 760,
  cell: (election) =>
    election.leader !== null && (
      <button
        type="button"
        class="small"
        aria-label={`Remove the leader of ${plain(election.row.name)} …`}
        onClick={() => open(() => <ResignDialog election={election} />)}
      >
        Remove …
      </button>
    ),
};

/** The page. */
export function ElectionsPage(): JSX.Element {
  const state = useStore(known).elections;
  const { sort = "name" } = useStore(route).params;
  const mayResign = useStore(session)?.allow.includes("resign") === true;
  if (state === undefined) return <Loading what="elections" />;
  const { elections } = state;
  const isWhole = !state.isCut && state.unreachable === 0;
  return (
    <>
      <KindHead title="Elections" kind="election" n={elections.length} extent={state} />
      <DataTable
        caption="Elections"
        isMain
        rows={elections}
        columns={mayResign ? [...COLUMNS, RESIGN] : COLUMNS}
        keyOf={({ row }) => row.id}
        hrefOf={({ row }) => lockHref(row)}
        underline={(election) => <Leader election={election} />}
        sort={sort}
        onSort={(next) => amend({ sort: next })}
        empty={
          <>
            <p class="strong">{isWhole ? "No election is active." : "None among those that were read."}</p>
            <p>An election appears here while it has a leader or a candidate.</p>
          </>
        }
      />
    </>
  );
}

function Leader({ election: { leader } }: { readonly election: ElectionView }): JSX.Element {
  return leader === null ? <span class="none">none</span> : <Who client={leader} />;
}

/** How long changes have been counted, if that is less than the day in the heading. */
function Watched({ sinceAtMs }: { readonly sinceAtMs: number }): JSX.Element | null {
  if (nowAtMs() - sinceAtMs >= DAY_MS) return null;
  return (
    <span class="app">
      {" "}
      in <Since atMs={sinceAtMs} />
    </span>
  );
}

function Changes({ election }: { readonly election: ElectionView }): JSX.Element {
  const { transitionsLastDay, watchedSinceAtMs, isFlapping } = election;
  return (
    <span>
      {isFlapping && (
        <span class="badge-warn" title="More than 6 changes in the last hour">
          <StateMark shape="trouble" /> flapping
        </span>
      )}{" "}
      {transitionsLastDay === null || watchedSinceAtMs === null ? (
        <None />
      ) : (
        <>
          {whole(transitionsLastDay)}
          <Watched sinceAtMs={watchedSinceAtMs} />
        </>
      )}
    </span>
  );
}

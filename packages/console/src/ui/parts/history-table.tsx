/** The table of history entries, for one lock or for all. */
import type { JSX } from "preact";
import type { HistoryOutcome, HistoryRow } from "../../api.js";
import { plain } from "../../plain.js";
import { duration } from "../format.js";
import { clientIdIn } from "../who.js";
import { type Column, DataTable } from "./data-table.js";
import { StateMark, type StateShape } from "./icons.js";
import { At, lockHref, Maybe, None, Outside, Who } from "./words.js";

const SHAPES: Readonly<Record<HistoryOutcome, StateShape>> = {
  held: "held",
  ending: "free",
  released: "good",
  lost: "trouble",
  expired: "trouble",
  forced: "trouble",
  skipped: "free",
  paused: "paused",
  resumed: "good",
};

/** The outcome as an icon and a word. */
export function Outcome({ outcome }: { readonly outcome: HistoryOutcome }): JSX.Element {
  return (
    <span class="outcome">
      <StateMark shape={SHAPES[outcome] ?? "free"} /> {outcome}
    </span>
  );
}

const NAME: Column<HistoryRow> = {
  id: "name",
  title: "Name",
  fromPx: 760,
  cell: ({ name }) => <Outside text={name} isCode />,
};

const OTHERS: readonly Column<HistoryRow>[] = [
  { id: "when", title: "When", width: "10.5rem", cell: ({ writtenAtMs }) => <At atMs={writtenAtMs} /> },
  {
    id: "outcome",
    title: "Outcome",
    width: "8rem",
    narrowWidth: "6.5rem",
    cell: ({ outcome }) => <Outcome outcome={outcome} />,
  },
  { id: "holder", title: "Holder", width: "13rem", fromPx: 760, cell: (row) => <HistoryWho row={row} /> },
  {
    id: "waited",
    title: "Waited",
    width: "5.5rem",
    fromPx: 900,
    isNumber: true,
    cell: ({ waitedMs }) => <Length ms={waitedMs} />,
  },
  {
    id: "held",
    title: "Held",
    width: "5.5rem",
    narrowWidth: "4.5rem",
    isNumber: true,
    cell: ({ heldMs }) => <Length ms={heldMs} />,
  },
  { id: "why", title: "Label or reason", width: "16rem", fromPx: 1_000, cell: (row) => <Why row={row} /> },
];

function Length({ ms }: { readonly ms: number | null }): JSX.Element {
  return ms === null ? <None /> : <span>{duration(ms)}</span>;
}

/** The holder; for a pause, who paused the lock. */
function HistoryWho({ row }: { readonly row: HistoryRow }): JSX.Element {
  if (isOfAPerson(row)) return <Maybe text={row.by} />;
  return row.host === null && row.app === null ? (
    <None />
  ) : (
    <Who client={{ ...row, clientId: clientIdIn(row.owner) }} />
  );
}

function isOfAPerson({ outcome }: HistoryRow): boolean {
  return outcome === "paused" || outcome === "resumed";
}

function Why({ row }: { readonly row: HistoryRow }): JSX.Element {
  const { reason, by, label } = row;
  if (reason === null) return <Maybe text={label} />;
  return (
    <span title={plain(reason)}>
      <Outside text={reason} />
      {by !== null && !isOfAPerson(row) && (
        <span class="app">
          {" "}
          by <Outside text={by} />
        </span>
      )}
    </span>
  );
}

/** The props of the table. */
export interface HistoryTableProps {
  readonly rows: readonly HistoryRow[];
  /** Whether each row names its lock and links to it. */
  readonly hasNames: boolean;
  readonly empty: JSX.Element;
  readonly isMain?: boolean;
}

/** The table, newest first. */
export function HistoryTable({ rows, hasNames, empty, isMain = false }: HistoryTableProps): JSX.Element {
  const [when, ...others] = OTHERS as [Column<HistoryRow>, ...Column<HistoryRow>[]];
  return (
    <DataTable
      caption="History, newest first"
      isMain={isMain}
      rows={rows}
      columns={hasNames ? [when, NAME, ...others] : OTHERS}
      keyOf={({ id }) => id}
      {...(hasNames ? { hrefOf: ({ kind, name }: HistoryRow) => lockHref({ kind: kind ?? "mutex", name }) } : {})}
      underline={(row) => (
        <>
          {hasNames && <Outside text={row.name} isCode />} <HistoryWho row={row} />
        </>
      )}
      empty={empty}
    />
  );
}

/** The semaphores page: how many permits are held, and by which holders. */
import type { JSX } from "preact";
import type { HolderView, PermitsView, SemaphoreView } from "../../api.js";
import { plain } from "../../plain.js";
import { open } from "../actions.js";
import { whole } from "../format.js";
import { known } from "../live.js";
import { ResizeDialog } from "../other-dialogs.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { KindHead, Loading } from "../parts/loading.js";
import { Spark } from "../parts/spark.js";
import { LockName, lockHref, None, Quantity } from "../parts/words.js";
import { session } from "../requests.js";
import { amend, route } from "../route.js";
import { useStore } from "../store.js";
import { whoText } from "../who.js";

/** Maximum number of permits drawn as squares. More are drawn as one bar, because squares would be too small. */
const SQUARES_AT_MOST = 24;

const COLUMNS: readonly Column<SemaphoreView>[] = [
  { id: "name", title: "Name", cell: ({ row }) => <LockName row={row} />, sortBy: ({ row }) => row.name },
  {
    id: "used",
    title: "Permits",
    width: "7rem",
    isNumber: true,
    cell: ({ permits }) => <Used permits={permits} />,
    sortBy: ({ permits }) => (permits?.limit == null ? 0 : permits.used / permits.limit),
  },
  {
    id: "each",
    title: "Usage",
    width: "17rem",
    fromPx: 760,
    cell: (semaphore) => <Permits semaphore={semaphore} />,
  },
  {
    id: "holders",
    title: "Holders",
    width: "14rem",
    fromPx: 1_100,
    cell: ({ holders }) => <Holders holders={holders} />,
  },
  {
    id: "waiters",
    title: "Waiters",
    width: "5.5rem",
    isNumber: true,
    cell: ({ row }) => <Quantity n={row.waiterCount} />,
    sortBy: ({ row }) => row.waiterCount,
  },
  {
    id: "contention",
    title: "Contention",
    width: "7rem",
    fromPx: 1_000,
    cell: ({ row }) => <Spark points={row.waiterSamples} noun="waiters" />,
  },
];

const RESIZE: Column<SemaphoreView> = {
  id: "resize",
  title: "",
  width: "6.5rem",
  fromPx: 760,
  cell: ({ row, permits }) =>
    permits !== null &&
    permits.limit !== null && (
      <button
        type="button"
        class="small"
        aria-label={`Resize ${plain(row.name)} …`}
        onClick={() => open(() => <ResizeDialog name={row.name} permits={permits} />)}
      >
        Resize …
      </button>
    ),
};

/** The page. */
export function SemaphoresPage(): JSX.Element {
  const state = useStore(known).semaphores;
  const { sort = "name" } = useStore(route).params;
  const mayResize = useStore(session)?.allow.includes("resize") === true;
  if (state === undefined) return <Loading what="semaphores" />;
  const { semaphores } = state;
  const isWhole = !state.isCut && state.unreachable === 0;
  return (
    <>
      <KindHead title="Semaphores" kind="semaphore" n={semaphores.length} extent={state} />
      <DataTable
        caption="Semaphores"
        isMain
        rows={semaphores}
        columns={mayResize ? [...COLUMNS, RESIZE] : COLUMNS}
        keyOf={({ row }) => row.id}
        hrefOf={({ row }) => lockHref(row)}
        underline={(semaphore) => <Permits semaphore={semaphore} />}
        sort={sort}
        onSort={(next) => amend({ sort: next })}
        rowHeightPx={48}
        empty={
          <>
            <p class="strong">{isWhole ? "No semaphore is in use." : "None among those that were read."}</p>
            <p>A semaphore appears here while a client holds a permit or waits for one.</p>
          </>
        }
      />
    </>
  );
}

function Used({ permits }: { readonly permits: PermitsView | null }): JSX.Element {
  if (permits === null) return <None />;
  return (
    <span>
      <span class="strong">{whole(permits.used)}</span> of {permits.limit === null ? "?" : whole(permits.limit)}
      {permits.isOver && <strong class="over"> over</strong>}
    </span>
  );
}

function Permits({ semaphore: { permits, holders } }: { readonly semaphore: SemaphoreView }): JSX.Element {
  if (permits === null || permits.limit === null) return <None />;
  const total = Math.max(permits.limit, permits.used);
  const label = `${permits.used} of ${permits.limit} permits are in use`;
  if (total > SQUARES_AT_MOST)
    return (
      <span class="left-bar wide" role="img" aria-label={label}>
        <span style={{ transform: `scaleX(${Math.min(1, permits.used / total).toFixed(3)})` }} />
      </span>
    );
  const owners = ownersOf(holders, total);
  return (
    <span class="squares" role="img" aria-label={label}>
      {owners.map((holder, slot) => (
        <span
          key={slot}
          class={`square${holder === undefined ? "" : " out"}${slot >= (permits.limit ?? 0) ? " beyond" : ""}`}
          title={`#${slot}: ${holder === undefined ? "free" : whoText(holder)}`}
        />
      ))}
    </span>
  );
}

/** The holder of each square: permits with a number keep their position, the others fill the gaps. */
function ownersOf(holders: readonly HolderView[], total: number): (HolderView | undefined)[] {
  const owners: (HolderView | undefined)[] = Array.from({ length: total }, () => undefined);
  for (const holder of holders) for (const slot of holder.slots) if (slot < total) owners[slot] = holder;
  for (const holder of holders)
    for (let left = holder.permits - holder.slots.length; left > 0; left -= 1) {
      const free = owners.indexOf(undefined);
      if (free >= 0) owners[free] = holder;
    }
  return owners;
}

function Holders({ holders }: { readonly holders: readonly HolderView[] }): JSX.Element {
  const [first] = holders;
  if (first === undefined) return <None />;
  const names = holders.map(whoText).join(", ");
  return <bdi title={names}>{names}</bdi>;
}

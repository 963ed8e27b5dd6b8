/** The clients page: which process holds which locks, for example after a host was lost. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { ClientsState, ClientView, HoldView } from "../../api.js";
import { leaseMsOf } from "../../filter.js";
import { open } from "../actions.js";
import { count, whole } from "../format.js";
import { known } from "../live.js";
import { ReleaseClientDialog } from "../other-dialogs.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { StateMark } from "../parts/icons.js";
import { LeaseLeft } from "../parts/lease-left.js";
import { Loading, Missing, StillReading } from "../parts/loading.js";
import { lockHref, Maybe, Outside, Quantity, Since, Who } from "../parts/words.js";
import { session } from "../requests.js";
import { amend, hrefOf, route } from "../route.js";
import { useStore } from "../store.js";

type Progress = Pick<ClientsState, "isCut" | "isPartial">;

const columnsOf = (state: Progress): readonly Column<ClientView>[] => [
  {
    id: "host",
    title: "Process",
    cell: (client) => (
      <>
        <Life client={client} /> <Who client={client} />
      </>
    ),
    sortBy: ({ host, pid, clientId }) => `${host ?? "~"} ${String(pid ?? 0).padStart(10, "0")} ${clientId}`,
  },
  { id: "state", title: "State", width: "7rem", fromPx: 760, cell: (client) => lifeWord(client) },
  {
    id: "held",
    title: "Holds",
    width: "5rem",
    isNumber: true,
    cell: ({ heldCount }) => <SoFar n={heldCount} state={state} />,
    sortBy: ({ heldCount }) => heldCount,
  },
  {
    id: "waits",
    title: "Waits",
    width: "5rem",
    isNumber: true,
    cell: ({ waitCount }) => <SoFar n={waitCount} state={state} />,
    sortBy: ({ waitCount }) => waitCount,
  },
  {
    id: "names",
    title: "Locks",
    width: "18rem",
    fromPx: 900,
    cell: (client) => <Names client={client} state={state} />,
  },
  { id: "version", title: "Version", width: "6rem", fromPx: 1_000, cell: ({ version }) => <Maybe text={version} /> },
  {
    id: "protocol",
    title: "Protocol",
    width: "5.5rem",
    fromPx: 1_300,
    isNumber: true,
    cell: ({ protocol }) => <Maybe text={protocol === null ? null : String(protocol)} />,
    sortBy: ({ protocol }) => protocol ?? 0,
  },
  {
    id: "since",
    title: "Uptime",
    width: "6.5rem",
    fromPx: 1_000,
    isNumber: true,
    cell: ({ sinceAtMs }) => <Since atMs={sinceAtMs} />,
    sortBy: ({ sinceAtMs }) => sinceAtMs ?? 0,
  },
  {
    id: "seen",
    title: "Last seen",
    width: "7rem",
    fromPx: 760,
    isNumber: true,
    cell: ({ seenAtMs }) => <Since atMs={seenAtMs} />,
  },
];

/** The page. */
export function ClientsPage(): JSX.Element {
  const state = useStore(known).clients;
  const { client: chosenId, sort = "host" } = useStore(route).params;
  const { isCut = false, isPartial } = state ?? {};
  const columns = useMemo(() => columnsOf({ isCut, ...(isPartial && { isPartial }) }), [isCut, isPartial]);
  if (state === undefined) return <Loading what="clients" />;
  const { clients, lockCount } = state;
  const chosen = clients.find(({ clientId }) => clientId === chosenId);
  return (
    <>
      <div class="page-head">
        <h1>Clients</h1>
        <p class="count">
          {count(clients.length, "process", "processes")}
          {isPartial && " so far"}
        </p>
      </div>
      {isPartial && <StillReading lockCount={lockCount} />}
      {isCut && !isPartial && (
        <p class="note">
          {lockCount === null ? "Not all locks were read." : `Only the first ${whole(lockCount)} locks were read.`} To
          see the rest, run <code>holdfast clients</code> in a shell.
        </p>
      )}
      <Missing extent={state} />
      {chosen !== undefined && <ClientCard client={chosen} state={state} />}
      <DataTable
        caption="Clients"
        isMain
        rows={clients}
        columns={columns}
        keyOf={({ clientId }) => clientId}
        hrefOf={({ clientId }) => hrefOf("clients", { client: clientId, sort })}
        underline={(client) => <Names client={client} state={state} />}
        sort={sort}
        onSort={(next) => amend({ sort: next === "host" ? undefined : next })}
        isGrowing={isPartial === true}
        empty={
          isPartial ? (
            <Loading what="clients" />
          ) : (
            <>
              <p class="strong">{state.unreachable > 0 ? "No client was found." : "No client uses a lock."}</p>
              <p>
                A process appears here at its first acquire, and disappears when it has acquired nothing for a while.
              </p>
            </>
          )
        }
      />
    </>
  );
}

function lifeWord({ isDead }: ClientView): string {
  return isDead === null ? "unknown" : isDead ? "gone" : "alive";
}

function Life({ client }: { readonly client: ClientView }): JSX.Element {
  const shape = client.isDead === null ? "free" : client.isDead ? "trouble" : "held";
  return <StateMark shape={shape} word={lifeWord(client)} />;
}

/**
 * A count, with a plus if the true number may be higher. While the locks are being read, a count of 0 means nothing
 * yet.
 */
function SoFar({ n, state: { isCut, isPartial } }: { readonly n: number; readonly state: Progress }): JSX.Element {
  if (n === 0 && isPartial) return <span class="none">…</span>;
  return (
    <span>
      <Quantity n={n} />
      {isCut && "+"}
    </span>
  );
}

interface ClientProps {
  readonly client: ClientView;
  readonly state: Progress;
}

function Names({ client: { holds, heldCount }, state: { isCut } }: ClientProps): JSX.Element {
  const [first] = holds;
  if (first === undefined) return <span class="none">{isCut ? "…" : "nothing"}</span>;
  return (
    <span>
      <Outside text={first.name} isCode />
      {heldCount > 1 && <span class="app"> and {count(heldCount - 1, "other")}</span>}
    </span>
  );
}

const HOLD_COLUMNS: readonly Column<HoldView>[] = [
  { id: "name", title: "Name", cell: ({ name }) => <Outside text={name} isCode /> },
  { id: "kind", title: "Kind", width: "8.5rem", fromPx: 760, cell: ({ kind }) => kind },
  {
    id: "since",
    title: "Held for",
    width: "5.5rem",
    isNumber: true,
    cell: ({ sinceAtMs }) => <Since atMs={sinceAtMs} />,
  },
  {
    id: "left",
    title: "Lease left",
    width: "7rem",
    isNumber: true,
    cell: ({ expiresAtMs, owner }) => <LeaseLeft endsAtMs={expiresAtMs ?? undefined} leaseMs={leaseMsOf(owner)} />,
  },
];

function ClientCard({ client, state: { isCut, isPartial } }: ClientProps): JSX.Element {
  const mayRelease = useStore(session)?.allow.includes("release") === true;
  return (
    <section class="card">
      <div class="card-head">
        <h2>
          <Life client={client} /> <Who client={client} />
        </h2>
        <div class="actions">
          {mayRelease && !isPartial && client.isDead === true && client.heldCount > 0 && (
            <button type="button" onClick={() => open(() => <ReleaseClientDialog client={client} isCut={isCut} />)}>
              Release all …
            </button>
          )}
          <button type="button" class="quiet" onClick={() => amend({ client: undefined })}>
            Close
          </button>
        </div>
      </div>
      <DataTable
        caption="Held locks"
        rows={client.holds}
        columns={HOLD_COLUMNS}
        keyOf={({ owner, kind, name }) => `${kind}:${name}:${owner}`}
        hrefOf={lockHref}
        empty={isCut ? "None of the locks read so far." : "It holds no locks."}
      />
      {client.heldCount > client.holds.length && <p class="note">The first {client.holds.length} are shown.</p>}
    </section>
  );
}

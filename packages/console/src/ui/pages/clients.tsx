/** The clients page: which process holds which locks, for example after a host was lost. */
import type { JSX } from "preact";
import type { ClientView, HoldView } from "../../api.js";
import { leaseMsOf } from "../../filter.js";
import { open } from "../actions.js";
import { count } from "../format.js";
import { known } from "../live.js";
import { ReleaseClientDialog } from "../other-dialogs.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { StateMark } from "../parts/icons.js";
import { LeaseLeft } from "../parts/lease-left.js";
import { Loading } from "../parts/loading.js";
import { lockHref, Maybe, Outside, Quantity, Since, Who } from "../parts/words.js";
import { session } from "../requests.js";
import { amend, hrefOf, route } from "../route.js";
import { useStore } from "../store.js";

const COLUMNS: readonly Column<ClientView>[] = [
  {
    id: "host",
    title: "Process",
    cell: (client) => (
      <>
        <Life client={client} /> <Who somebody={client} />
      </>
    ),
    sortBy: ({ host, clientId }) => host ?? clientId,
  },
  { id: "state", title: "State", width: "7rem", fromPx: 760, cell: (client) => lifeWord(client) },
  {
    id: "held",
    title: "Holds",
    width: "5rem",
    isNumber: true,
    cell: ({ heldCount }) => <Quantity n={heldCount} />,
    sortBy: ({ heldCount }) => heldCount,
  },
  {
    id: "waits",
    title: "Waits",
    width: "5rem",
    isNumber: true,
    cell: ({ waitCount }) => <Quantity n={waitCount} />,
    sortBy: ({ waitCount }) => waitCount,
  },
  { id: "names", title: "Locks", width: "18rem", fromPx: 900, cell: (client) => <Names client={client} /> },
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
  const { clients } = useStore(known);
  const { client: chosenId, sort } = useStore(route).params;
  if (clients === undefined) return <Loading what="clients" />;
  const chosen = clients.find(({ clientId }) => clientId === chosenId);
  return (
    <>
      <div class="page-head">
        <h1>Clients</h1>
        <p class="count">{count(clients.length, "process", "processes")}</p>
      </div>
      {chosen !== undefined && <ClientCard client={chosen} />}
      <DataTable
        caption="Clients"
        isMain
        rows={clients}
        columns={COLUMNS}
        keyOf={({ clientId }) => clientId}
        hrefOf={({ clientId }) => hrefOf("clients", { client: clientId, sort })}
        underline={(client) => <Names client={client} />}
        sort={sort}
        onSort={(next) => amend({ sort: next })}
        empty={
          <>
            <p class="strong">No client uses a lock.</p>
            <p>A process appears here at its first acquire, and disappears about a minute after its last.</p>
          </>
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

function Names({ client: { holds, heldCount } }: { readonly client: ClientView }): JSX.Element {
  const [first] = holds;
  if (first === undefined) return <span class="none">nothing</span>;
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
  { id: "since", title: "Since", width: "5.5rem", isNumber: true, cell: ({ sinceAtMs }) => <Since atMs={sinceAtMs} /> },
  {
    id: "left",
    title: "Lease left",
    width: "7rem",
    isNumber: true,
    cell: ({ expiresAtMs, owner }) => <LeaseLeft endsAtMs={expiresAtMs ?? undefined} leaseMs={leaseMsOf(owner)} />,
  },
];

function ClientCard({ client }: { readonly client: ClientView }): JSX.Element {
  const mayRelease = useStore(session)?.allow.includes("release") === true;
  return (
    <section class="card">
      <div class="card-head">
        <h2>
          <Life client={client} /> <Who somebody={client} />
        </h2>
        <div class="actions">
          {mayRelease && client.isDead === true && client.heldCount > 0 && (
            <button type="button" onClick={() => open(() => <ReleaseClientDialog client={client} />)}>
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
        empty="It holds no locks."
      />
      {client.heldCount > client.holds.length && <p class="note">The first {client.holds.length} are shown.</p>}
    </section>
  );
}

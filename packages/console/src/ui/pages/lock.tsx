/** The page of one lock: holders, queue, history and actions. */
import type { ComponentChildren, JSX } from "preact";
import type { HolderView, LockAnswer, LockRow, WaiterView } from "../../api.js";
import { leaseMsOf } from "../../filter.js";
import { open } from "../actions.js";
import { count, whole } from "../format.js";
import { known } from "../live.js";
import { PauseDialog, ResizeDialog, ResumeDialog } from "../other-dialogs.js";
import { Copyable } from "../parts/copy.js";
import { type Column, DataTable } from "../parts/data-table.js";
import { HistoryTable } from "../parts/history-table.js";
import { LeaseLeft } from "../parts/lease-left.js";
import { Loading } from "../parts/loading.js";
import { Timeline } from "../parts/timeline.js";
import { At, Countdown, Gone, LockMark, lockHref, Maybe, None, Outside, Since, Who } from "../parts/words.js";
import { ReleaseDialog } from "../release-dialog.js";
import { hrefOf, route } from "../route.js";
import { useStore } from "../store.js";
import { freeText, releaseCommand, topologyText } from "../summary.js";
import { whoText } from "../who.js";

/** The page. */
export function LockPage(): JSX.Element {
  const { lock } = useStore(known);
  const { kind = "", name = "", key } = useStore(route).params;
  const isThis = lock?.row.kind === kind && lock.row.name === name && (lock.row.key ?? undefined) === key;
  if (lock === null) return <p class="empty">You may no longer see this lock.</p>;
  if (!isThis || lock === undefined) return <Loading what="lock" />;
  const { row } = lock;
  return (
    <article class="lock">
      <header class="lock-head">
        <p class="crumbs">
          <a href={hrefOf("locks")}>Locks</a>
        </p>
        <h1>
          <Outside text={row.name} isCode />
        </h1>
        <p class="state-line">
          <LockMark state={row.state} />
          <span class="strong">{row.state}</span>
          <span>{row.kind}</span>
          {row.permits !== null && (
            <span>
              {whole(row.permits.used)} of {row.permits.limit === null ? "?" : whole(row.permits.limit)} permits
              {row.permits.isOver && <strong class="over"> over the limit</strong>}
            </span>
          )}
        </p>
        <Actions lock={lock} />
      </header>
      <Explain lock={lock} />
      <PauseNote lock={lock} />
      <GoneNote lock={lock} />
      <TopologyNote lock={lock} />
      <OtherKinds lock={lock} />
      <Leader lock={lock} />
      <Section title={count(row.holderCount, "holder")} isShown={row.holderCount > 0}>
        <HoldersTable lock={lock} />
      </Section>
      <Section title={count(row.waiterCount, "waiter")} isShown={row.waiterCount > 0}>
        <DataTable
          caption="Waiters, next one first"
          rows={lock.waiters}
          columns={WAITER_COLUMNS}
          keyOf={({ owner }) => owner}
          underline={({ label }) => label !== null && <Maybe text={label} />}
          empty="No waiters."
        />
        {row.waiterCount > lock.waiters.length && <p class="note">The first {lock.waiters.length} are shown.</p>}
      </Section>
      <Section title="History" isShown>
        <Timeline rows={lock.history} />
        <HistoryTable rows={lock.history} hasNames={false} empty={<NoHistory />} />
      </Section>
    </article>
  );
}

interface SectionProps {
  readonly title: string;
  readonly isShown: boolean;
  readonly children: ComponentChildren;
}

function Section({ title, isShown, children }: SectionProps): JSX.Element | null {
  if (!isShown) return null;
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Why the next waiter does not hold the lock. Shown above all tables because operators need it first. */
function Explain({ lock: { explain } }: { readonly lock: LockAnswer }): JSX.Element {
  return (
    <p class={`explain ${explain.code}`}>
      <Outside text={explain.text} />
      {explain.untilAtMs !== null && (
        <span class="until">
          {" "}
          In <Countdown atMs={explain.untilAtMs} /> at the latest.
        </span>
      )}
    </p>
  );
}

function PauseNote({ lock: { row } }: { readonly lock: LockAnswer }): JSX.Element | null {
  const { pause } = row;
  if (pause === null) return null;
  return (
    <dl class="facts card">
      <dt>Paused by</dt>
      <dd>
        <Maybe text={pause.by} />
      </dd>
      <dt>Reason</dt>
      <dd>
        <Maybe text={pause.reason} />
      </dd>
      <dt>Paused for</dt>
      <dd>
        <Since atMs={pause.sinceAtMs} />
      </dd>
      <dt>Until</dt>
      <dd>{pause.untilAtMs === null ? "it is resumed" : <At atMs={pause.untilAtMs} />}</dd>
    </dl>
  );
}

/** A note for each shown holder whose client is gone: for how long, and when its lease ends, which ends its hold. */
function GoneNote({ lock: { row, holders, actions } }: { readonly lock: LockAnswer }): JSX.Element | null {
  if (row.goneCount === 0) return null;
  const isCommand = holders.slice(0, MOST_COMMANDS).some(({ token }) => releaseCommand(row, token) !== undefined);
  const free = freeText({ isButton: actions.includes("release"), isCommand });
  return (
    <div class="explain warn">
      {holders
        .filter(({ goneSinceAtMs }) => goneSinceAtMs !== null)
        .slice(0, MOST_COMMANDS)
        .map((holder) => (
          <p key={holder.owner}>
            The client of <Who client={holder} /> has been gone for <Since atMs={holder.goneSinceAtMs} />
            {holder.expiresAtMs === null ? (
              ", and its hold has no end."
            ) : (
              <>
                ; its lease ends in <Countdown atMs={holder.expiresAtMs} />.
              </>
            )}
          </p>
        ))}
      {row.goneCount > MOST_COMMANDS && <p>{whole(row.goneCount)} of the holders are gone.</p>}
      {free !== undefined && <p>{free}</p>}
    </div>
  );
}

function TopologyNote({ lock: { row } }: { readonly lock: LockAnswer }): JSX.Element | null {
  const text = topologyText(row);
  return text === undefined ? null : <p class="explain warn">{text}</p>;
}

function OtherKinds({ lock: { row, otherKinds } }: { readonly lock: LockAnswer }): JSX.Element | null {
  if (otherKinds.length === 0) return null;
  return (
    <p class="explain warn">
      The same name is in use as{" "}
      {otherKinds.map((kind, i) => (
        <span key={kind}>
          {i > 0 && ", "}
          <a href={lockHref({ kind, name: row.name })}>{kind}</a>
        </span>
      ))}
      . Each kind has separate keys, so these locks do not exclude each other.
    </p>
  );
}

function Leader({ lock: { leader } }: { readonly lock: LockAnswer }): JSX.Element | null {
  if (leader === null) return null;
  return (
    <dl class="facts card">
      <dt>Leader</dt>
      <dd>
        <Who client={leader} />
      </dd>
      <dt>Value</dt>
      <dd>{leader.value === null ? <None /> : <Copyable value={leader.value} noun="value" />}</dd>
      <dt>Term</dt>
      <dd class="code">{String(leader.term)}</dd>
    </dl>
  );
}

function Actions({ lock }: { readonly lock: LockAnswer }): JSX.Element | null {
  const { row, actions } = lock;
  const { pause, permits } = row;
  const may = (action: (typeof actions)[number]): boolean => actions.includes(action);
  if (actions.length === 0) return null;
  return (
    <div class="actions">
      {may("resize") && permits !== null && permits.limit !== null && (
        <button type="button" onClick={() => open(() => <ResizeDialog name={row.name} permits={permits} />)}>
          Resize …
        </button>
      )}
      {may("pause") && pause === null && (
        <button type="button" onClick={() => open(() => <PauseDialog row={row} />)}>
          Pause …
        </button>
      )}
      {may("pause") && pause !== null && (
        <button type="button" onClick={() => open(() => <PauseDialog row={row} pause={pause} />)}>
          Extend the pause …
        </button>
      )}
      {may("resume") && pause !== null && (
        <button type="button" onClick={() => open(() => <ResumeDialog row={row} pause={pause} />)}>
          Resume …
        </button>
      )}
    </div>
  );
}

function HoldersTable({ lock }: { readonly lock: LockAnswer }): JSX.Element {
  const { row, holders, actions } = lock;
  const mayRelease = actions.includes("release");
  return (
    <>
      <HoldersRows row={row} holders={holders} mayRelease={mayRelease} />
      {holders.slice(0, MOST_COMMANDS).map(({ owner, token }) => {
        const command = releaseCommand(row, token);
        return (
          command !== undefined && (
            <p key={owner} class="note command">
              From a shell: <Copyable value={command} noun="command" />
            </p>
          )
        );
      })}
    </>
  );
}

/** Maximum number of commands shown below the table, because each takes a full row. */
const MOST_COMMANDS = 3;

interface HoldersRowsProps {
  readonly row: LockRow;
  readonly holders: readonly HolderView[];
  readonly mayRelease: boolean;
}

function HoldersRows({ row, holders, mayRelease }: HoldersRowsProps): JSX.Element {
  return (
    <DataTable
      caption="Holders"
      isMain
      rows={holders}
      columns={mayRelease ? [...holderColumns(row), releaseColumn(row)] : holderColumns(row)}
      keyOf={({ owner }) => owner}
      underline={(holder) => (
        <>
          <Since atMs={holder.sinceAtMs} />
          {holder.label !== null && " · "}
          {holder.label !== null && <Maybe text={holder.label} />}
        </>
      )}
      empty="No holders."
    />
  );
}

function holderColumns(row: LockRow): readonly Column<HolderView>[] {
  const columns: Column<HolderView>[] = [
    { id: "who", title: "Holder", cell: (holder) => <WhoOrGone claim={holder} /> },
    {
      id: "since",
      title: "Held for",
      width: "5.5rem",
      fromPx: 760,
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
    {
      id: "token",
      title: "Token",
      width: "15rem",
      fromPx: 900,
      cell: ({ token }) => (token === null ? <None /> : <Copyable value={String(token)} noun="token" />),
    },
    {
      id: "owner",
      title: "Owner",
      width: "19rem",
      fromPx: 1_200,
      cell: ({ owner }) => <Copyable value={owner} noun="owner" />,
    },
    { id: "label", title: "Label", width: "10rem", fromPx: 1_000, cell: ({ label }) => <Maybe text={label} /> },
  ];
  const isShared = row.kind === "read-write-lock";
  const hasPermits = row.permits !== null;
  if (isShared)
    columns.splice(1, 0, { id: "mode", title: "Mode", width: "6rem", fromPx: 760, cell: ({ mode }) => mode });
  if (hasPermits)
    columns.splice(1, 0, {
      id: "slots",
      title: "Permits",
      width: "6rem",
      fromPx: 760,
      cell: ({ permits, slots }) => (slots.length === 0 ? whole(permits) : slots.map((slot) => `#${slot}`).join(" ")),
    });
  return columns;
}

function releaseColumn(row: LockRow): Column<HolderView> {
  return {
    id: "release",
    title: "",
    width: "6.5rem",
    cell: (holder) => (
      <button
        type="button"
        class="small"
        aria-label={`Release the hold of ${whoText(holder)} …`}
        onClick={() => open(() => <ReleaseDialog row={row} holder={holder} />)}
      >
        Release …
      </button>
    ),
  };
}

const WAITER_COLUMNS: readonly Column<WaiterView>[] = [
  { id: "who", title: "Waiter", cell: (waiter) => <PlaceAndWho waiter={waiter} /> },
  {
    id: "since",
    title: "Waiting",
    width: "6rem",
    isNumber: true,
    cell: ({ sinceAtMs }) => <Since atMs={sinceAtMs} />,
  },
  { id: "mode", title: "Asks for", width: "8rem", fromPx: 900, cell: (waiter) => asksFor(waiter) },
  { id: "label", title: "Label", width: "16rem", fromPx: 760, cell: ({ label }) => <Maybe text={label} /> },
];

function PlaceAndWho({ waiter }: { readonly waiter: WaiterView }): JSX.Element {
  return (
    <>
      <span class="place">{waiter.place}</span> <WhoOrGone claim={waiter} />
    </>
  );
}

function WhoOrGone({ claim }: { readonly claim: HolderView | WaiterView }): JSX.Element {
  return (
    <>
      <Gone atMs={claim.goneSinceAtMs} />
      <Who client={claim} />
    </>
  );
}

function asksFor({ mode, permits }: WaiterView): string {
  return permits > 1 ? count(permits, "permit") : mode;
}

function NoHistory(): JSX.Element {
  return (
    <p>
      No history for this name. The history is written by holdfast run, holdfast elect, pauses, force-releases, and
      programs that use recordHistory.
    </p>
  );
}

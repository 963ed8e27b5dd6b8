/** The dialogs to pause, resume, resize, remove a leader, and release the locks of a client that is gone. */
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { ClientView, ElectionView, LockRow, PauseView, PermitsView } from "../api.js";
import { ActionForm } from "./actions.js";
import { nowAtMs } from "./clock.js";
import { durationMs } from "./durations.js";
import { count } from "./format.js";
import { Maybe, Outside, Since, Who } from "./parts/words.js";

/** Pauses a lock: no new grants, while the current holder continues. */
export function PauseDialog({
  row: { kind, name, key, holderCount },
  pause,
}: {
  readonly row: LockRow;
  readonly pause?: PauseView;
}): JSX.Element {
  const [length, setLength] = useState("1h");
  const id = useId();
  const lengthMs = length.trim() === "" ? null : durationMs(length.trim());
  return (
    <ActionForm
      title={pause === undefined ? "Pause" : "Extend the pause"}
      verb={pause === undefined ? "Pause" : "Extend"}
      action={pause === undefined ? "pause" : "extend-pause"}
      body={() => {
        if (lengthMs === undefined) return undefined;
        const untilAtMs = lengthMs === null ? null : Math.round(nowAtMs() + lengthMs);
        return { kind, name, key, untilAtMs, ...(pause === undefined ? {} : { pauseId: pause.id }) };
      }}
    >
      <p>
        No client can acquire <Outside text={name} isCode /> while it is paused.{" "}
        {holderCount > 0 &&
          `${holderCount === 1 ? "Its holder keeps" : `Its ${holderCount} holders keep`} it until it is released.`}
      </p>
      <label for={id}>Duration, from now</label>
      <input
        id={id}
        value={length}
        autocomplete="off"
        aria-invalid={lengthMs === undefined}
        placeholder="until it is resumed"
        onInput={({ currentTarget }) => setLength(currentTarget.value)}
      />
      <p class="hint">For example 15m, 1h30m or 2d. Empty: until it is resumed.</p>
    </ActionForm>
  );
}

/** Ends a pause. */
export function ResumeDialog({ row, pause }: { readonly row: LockRow; readonly pause: PauseView }): JSX.Element {
  const { kind, name, key, waiterCount } = row;
  return (
    <ActionForm title="Resume" verb="Resume" action="resume" body={() => ({ kind, name, key, pauseId: pause.id })}>
      <p>
        <Outside text={name} isCode /> can be acquired again.{" "}
        {waiterCount > 0 && `It has ${count(waiterCount, "waiter")}.`}
      </p>
      <dl class="facts">
        <dt>Paused by</dt>
        <dd>
          <Maybe text={pause.by} />
        </dd>
        <dt>Paused for</dt>
        <dd>
          <Since atMs={pause.sinceAtMs} />
        </dd>
        <dt>Reason</dt>
        <dd>
          <Maybe text={pause.reason} />
        </dd>
      </dl>
    </ActionForm>
  );
}

const PERMITS_AT_MOST = 1_000_000;

/** Changes the number of permits. */
export function ResizeDialog({ name, permits }: { readonly name: string; readonly permits: PermitsView }): JSX.Element {
  const [from, setFrom] = useState(permits.limit ?? 0);
  const [typed, setTyped] = useState(String(from));
  const id = useId();
  const to = /^[1-9]\d*$/.test(typed) ? Number(typed) : Number.NaN;
  const isFitting = to >= 1 && to <= PERMITS_AT_MOST && to !== from;
  return (
    <ActionForm
      title="Resize"
      verb="Resize"
      action="resize"
      body={() => (isFitting ? { name, from, permits: to } : undefined)}
      onStale={({ permits: present }) => {
        if (present?.limit != null) setFrom(present.limit);
      }}
    >
      <p>
        <Outside text={name} isCode /> has {count(from, "permit")}, and {permits.used} are in use. Programs that still
        use the old number are refused, so change them as well.
      </p>
      <label for={id}>Permits</label>
      <input
        id={id}
        inputMode="numeric"
        value={typed}
        autocomplete="off"
        aria-invalid={!isFitting}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      {to < permits.used && (
        <p class="hint">
          {permits.used} are in use: none is taken away, and none is granted until fewer than {to} are in use.
        </p>
      )}
    </ActionForm>
  );
}

/** Removes the leader, so that the next candidate leads. */
export function ResignDialog({ election }: { readonly election: ElectionView }): JSX.Element {
  const { row, leader, candidateCount } = election;
  return (
    <ActionForm
      title="Remove the leader"
      verb="Remove"
      action="resign"
      isGrave
      confirm={row.name}
      body={() => (leader === null ? undefined : { name: row.name, term: leader.term })}
    >
      <p>
        Ends the term of the leader of <Outside text={row.name} isCode />.
      </p>
      <dl class="facts">
        <dt>Leader</dt>
        <dd>{leader === null ? "none" : <Who client={leader} />}</dd>
        <dt>Term</dt>
        <dd>{leader?.term ?? "none"}</dd>
        <dt>Next</dt>
        <dd>{candidateCount === 0 ? "no candidates: there will be no leader" : count(candidateCount, "candidate")}</dd>
      </dl>
    </ActionForm>
  );
}

interface ReleaseClientProps {
  readonly client: ClientView;
  /** Whether there are more locks than were read, so that the client may hold more. */
  readonly isCut: boolean;
}

/** Releases all locks of a client that is gone. */
export function ReleaseClientDialog({ client, isCut }: ReleaseClientProps): JSX.Element {
  return (
    <ActionForm
      title="Release all locks of a gone client"
      verb="Release all"
      action="release-client"
      isGrave
      confirm={client.clientId}
      body={() => ({ clientId: client.clientId })}
    >
      <p>
        <Who client={client} /> is gone and holds {isCut && "at least "}
        {count(client.heldCount, "lock")}, which become free when its leases end. Before it releases them, the server
        checks again that the client is gone.
      </p>
    </ActionForm>
  );
}

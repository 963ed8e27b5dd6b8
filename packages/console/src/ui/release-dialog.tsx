/**
 * Force release. The dialog says which holder loses the lock, because afterward two programs may both believe that
 * they hold it.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { HolderView, LockRow } from "../api.js";
import { ActionForm } from "./actions.js";
import { count } from "./format.js";
import { Maybe, Outside, Since, Who } from "./parts/words.js";

/** The lock and the holder as the page showed them. */
export interface ReleaseDialogProps {
  readonly row: LockRow;
  readonly holder: HolderView;
}

/** The dialog. If the page was out of date, it shows the current holder and asks for the name again. */
export function ReleaseDialog({ row, holder: shown }: ReleaseDialogProps): JSX.Element {
  const [holder, setHolder] = useState<HolderView | undefined>(shown);
  const { kind, name, key, waiterCount, pause } = row;
  return (
    <ActionForm
      title="Force release"
      verb="Release"
      action="release"
      isGrave
      confirm={name}
      body={() => (holder === undefined ? undefined : { kind, name, key, owner: holder.owner, token: holder.token })}
      onStale={(problem) => setHolder(problem.holder ?? undefined)}
    >
      <p>
        Takes <Outside text={name} isCode /> from its holder. If the holder can be reached, it is notified immediately.
        Otherwise it may keep working until its lease ends, at the same time as the next holder. Only a check of the
        fencing token prevents that.
      </p>
      {holder === undefined ? (
        <p class="strong">It has no holder now.</p>
      ) : (
        <dl class="facts">
          <dt>Holder</dt>
          <dd>
            <Who client={holder} />
          </dd>
          <dt>Held for</dt>
          <dd>
            <Since atMs={holder.sinceAtMs} />
          </dd>
          <dt>Label</dt>
          <dd>
            <Maybe text={holder.label} />
          </dd>
          <dt>Token</dt>
          <dd class="code">{holder.token === null ? "none" : String(holder.token)}</dd>
          <dt>Next</dt>
          <dd>
            {waiterCount === 0 ? "no waiters" : count(waiterCount, "waiter")}
            {waiterCount > 0 && pause !== null && "; none gets it until the pause ends"}
          </dd>
        </dl>
      )}
    </ActionForm>
  );
}

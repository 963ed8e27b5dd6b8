/** Force release: the one action that can make two programs believe that they are alone, so it says what it takes from whom. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { HolderView, LockRow } from "../api.js";
import { ActionForm } from "./actions.js";
import { count } from "./format.js";
import { Maybe, Outside, Since, Who } from "./parts/words.js";

/** What it is about, as the page showed it. */
export interface ReleaseDialogProps {
  readonly row: LockRow;
  readonly holder: HolderView;
}

/** The dialogue. When the page was out of date it shows the present holder, and asks for the name again. */
export function ReleaseDialog({ row, holder: shown }: ReleaseDialogProps): JSX.Element {
  const [holder, setHolder] = useState<HolderView | undefined>(shown);
  const { kind, name, key, waiterCount } = row;
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
        Takes <Outside text={name} isCode /> away from its holder. Its lease is told at once, but work that is under way
        may go on for a moment beside the next holder: only a check of the token stops that.
      </p>
      {holder === undefined ? (
        <p class="strong">Nobody holds it now.</p>
      ) : (
        <dl class="facts">
          <dt>Holder</dt>
          <dd>
            <Who somebody={holder} />
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
          <dd>{waiterCount === 0 ? "nobody waits" : `${count(waiterCount, "waiter")}, the first gets it at once`}</dd>
        </dl>
      )}
    </ActionForm>
  );
}

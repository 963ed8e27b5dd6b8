/** Notes on a page whose data is still loading or incomplete. */
import type { JSX } from "preact";
import type { Extent } from "../../api.js";
import { count, whole } from "../format.js";
import { hrefOf } from "../route.js";
import { unreachableText } from "../search.js";

/** The loading text. Appears after a short delay, to avoid flicker when data arrives quickly. */
export function Loading({ what }: { readonly what: string }): JSX.Element {
  return <p class="loading">Reading the {what} …</p>;
}

/** The note on a page that already shows some rows. `lockCount`: the number of locks read; null if it is private. */
export function StillReading({ lockCount }: { readonly lockCount: number | null }): JSX.Element {
  return (
    <p class="note">
      Still reading the locks{lockCount !== null && `: ${whole(lockCount)} so far`}. Rows are added, and counts may
      rise.
    </p>
  );
}

/** The warning on a list that lacks the locks of servers that did not reply. */
export function Missing({ extent }: { readonly extent: Pick<Extent, "unreachable"> }): JSX.Element | null {
  const text = unreachableText(extent);
  return text === undefined ? null : <p class="explain warn">{text}</p>;
}

interface KindHeadProps {
  readonly title: string;
  readonly kind: "semaphore" | "election";
  readonly n: number;
  readonly extent: Extent;
}

/** The head of a page with locks of one kind. Says so if some of them are missing. */
export function KindHead({ title, kind, n, extent }: KindHeadProps): JSX.Element {
  const { isCut } = extent;
  return (
    <>
      <div class="page-head">
        <h1>{title}</h1>
        <p class="count">{isCut ? `${whole(n)}+ ${kind}s` : count(n, kind)}</p>
      </div>
      {isCut && (
        <p class="note">
          Not all {kind}s were read. To find another one, filter{" "}
          <a href={hrefOf("locks", { q: `kind:${kind}` })}>the locks</a>.
        </p>
      )}
      <Missing extent={extent} />
    </>
  );
}

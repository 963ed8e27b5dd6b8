/** What a page says while it loads. */
import type { JSX } from "preact";
import { whole } from "../format.js";

/** The loading text. Appears after a short delay, to avoid flicker when data arrives quickly. */
export function Loading({ what }: { readonly what: string }): JSX.Element {
  return <p class="loading">Reading the {what} …</p>;
}

/** The line of a page that already shows some rows. `lockCount`: the number of locks read; null if it is private. */
export function StillReading({ lockCount }: { readonly lockCount: number | null }): JSX.Element {
  return (
    <p class="note">
      Still reading the locks{lockCount !== null && `: ${whole(lockCount)} so far`}. Rows are added, and counts may
      rise.
    </p>
  );
}

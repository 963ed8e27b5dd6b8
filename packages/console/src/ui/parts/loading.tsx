/** Nothing has come yet. It says so only after a moment, since what comes at once would make it flicker. */
import type { JSX } from "preact";

/** The words for it. */
export function Loading({ what }: { readonly what: string }): JSX.Element {
  return <p class="loading">Reading the {what} …</p>;
}

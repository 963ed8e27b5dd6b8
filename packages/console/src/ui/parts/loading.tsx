/** The loading text. Appears after a short delay, to avoid flicker when data arrives quickly. */
import type { JSX } from "preact";

/** The loading text. */
export function Loading({ what }: { readonly what: string }): JSX.Element {
  return <p class="loading">Reading the {what} …</p>;
}

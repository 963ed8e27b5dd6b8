/** Global keyboard shortcuts. None of them changes a lock: all actions go through a dialog. */
import { go, type PageName } from "./route.js";

/** The functions that the keys call. */
export interface KeyActions {
  focusFilter(): void;
  /** Moves to the next row (1) or the previous one (-1). */
  moveRow(step: 1 | -1): void;
  togglePause(): void;
  showHelp(): void;
  /** Removes the focus from the current element. */
  escape(): void;
}

/** The shortcuts, in the order in which the help dialog shows them. */
export const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["/", "Filter"],
  ["j k", "Next row, previous row"],
  ["Enter", "Open the row"],
  ["g l", "Locks"],
  ["g c", "Clients"],
  ["g s", "Semaphores"],
  ["g e", "Elections"],
  ["g o", "Once"],
  ["g h", "History"],
  ["g r", "Redis"],
  ["p", "Stop or resume updates"],
  ["?", "This help"],
  ["Esc", "Close, or leave the list"],
];

const AFTER_G: Readonly<Record<string, PageName>> = {
  l: "locks",
  c: "clients",
  s: "semaphores",
  e: "elections",
  o: "once",
  h: "history",
  r: "redis",
};
/** How long `g` waits for its second key. */
const SECOND_KEY_MS = 1_500;

/** Starts to handle keys. @returns a function that stops it */
export function listenToKeys(actions: KeyActions): () => void {
  let gAtMs = Number.NEGATIVE_INFINITY;
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]") !== null) return; // an open dialog handles the keys itself
    if (event.key === "Escape") {
      actions.escape();
      return;
    }
    if (isTyping(event.target)) return;
    const page = performance.now() - gAtMs < SECOND_KEY_MS ? AFTER_G[event.key] : undefined;
    gAtMs = event.key === "g" ? performance.now() : Number.NEGATIVE_INFINITY;
    const action = page === undefined ? actionOf(event.key, actions) : () => go(page);
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

function actionOf(key: string, actions: KeyActions): (() => void) | undefined {
  switch (key) {
    case "/":
      return actions.focusFilter;
    case "j":
      return () => actions.moveRow(1);
    case "k":
      return () => actions.moveRow(-1);
    case "p":
      return actions.togglePause;
    case "?":
      return actions.showHelp;
    default:
      return undefined;
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
}

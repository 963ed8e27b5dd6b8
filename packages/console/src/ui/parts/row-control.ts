/** Connects the keyboard shortcuts to the main table of the page, which registers its step function here. */
import { Store } from "../store.js";

/** Moves to the next or previous row; undefined on pages without rows. */
export const rowControl: Store<((step: 1 | -1) => void) | undefined> = new Store<((step: 1 | -1) => void) | undefined>(
  undefined,
);

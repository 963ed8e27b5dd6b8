/** How the keys reach the rows of the page: its main table puts its own step here. */
import { Store } from "../store.js";

/** Moves to the next row or to the one before; undefined where a page has no rows. */
export const rowControl: Store<((step: 1 | -1) => void) | undefined> = new Store<((step: 1 | -1) => void) | undefined>(
  undefined,
);

/** Keeps the rows of a list in their places while the list is still loading, so that none jumps away before a click. */
import { useEffect, useRef, useState } from "preact/hooks";

/** The rows in the order to show, and the function to call when the pointer enters or leaves a row. */
export interface Still<Row> {
  readonly rows: readonly Row[];
  readonly point: (isPointed: boolean) => void;
}

/**
 * While the list grows, rows stay where they were first shown, and new rows come last. When the list is complete, it is
 * sorted. If the pointer is on a row, sorting waits until the pointer leaves the row or the page scrolls.
 */
export function useStill<Row>(
  ordered: readonly Row[],
  keyOf: (row: Row) => string,
  { isGrowing, sort }: { readonly isGrowing: boolean; readonly sort: string | undefined },
): Still<Row> {
  const [isPointed, point] = useState(false);
  const shown = useRef<{ readonly sort: string | undefined; readonly places: ReadonlyMap<string, number> } | undefined>(
    undefined,
  );
  useEffect(() => {
    if (!isPointed) return undefined;
    const release = (): void => point(false);
    addEventListener("scroll", release, { passive: true });
    return () => removeEventListener("scroll", release);
  }, [isPointed]);
  const before = shown.current;
  const isHeld = before !== undefined && before.sort === sort && (isGrowing || isPointed);
  const rows = isHeld ? inPlaces(ordered, keyOf, before.places) : ordered;
  shown.current =
    isGrowing || isHeld ? { sort, places: new Map(rows.map((row, place) => [keyOf(row), place])) } : undefined;
  return { rows, point };
}

function inPlaces<Row>(
  ordered: readonly Row[],
  keyOf: (row: Row) => string,
  places: ReadonlyMap<string, number>,
): readonly Row[] {
  const placed = ordered.map((row) => ({ row, place: places.get(keyOf(row)) ?? places.size }));
  return placed.sort((left, right) => left.place - right.place).map(({ row }) => row);
}

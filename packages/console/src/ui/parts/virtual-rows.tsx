/**
 * Renders only the visible rows of a long table and a few around them: about forty elements for ten thousand locks.
 *
 * The page itself scrolls, not a box in it, so that the browser's keys, zoom and scroll position work as usual. All
 * rows have the same height. The focused row stays in the document even out of view, because removing its element
 * would lose the focus.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows rendered beyond the visible area, so that fast scrolling shows no gaps. */
const SPARE_ROWS = 12;

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The props of the component. */
export interface VirtualRowsProps {
  readonly count: number;
  readonly columnCount: number;
  readonly rowHeightPx: number;
  /** The index of a row that is always rendered; -1 for none. */
  readonly keep: number;
  readonly row: (index: number) => JSX.Element;
}

/** A `tbody` with the visible rows. */
export function VirtualRows({ count, columnCount, rowHeightPx, keep, row }: VirtualRowsProps): JSX.Element {
  const body = useRef<HTMLTableSectionElement>(null);
  const [span, setSpan] = useState<Span>({ from: 0, to: 2 * SPARE_ROWS });

  useLayoutEffect(() => {
    const measure = (): void => {
      const topPx = body.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-topPx / rowHeightPx) - SPARE_ROWS);
      const to = Math.ceil((innerHeight - topPx) / rowHeightPx) + SPARE_ROWS;
      setSpan((before) => (before.from === from && before.to === to ? before : { from, to }));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [rowHeightPx, count]);

  const drawn: JSX.Element[] = [];
  let next = 0;
  const gapBefore = (index: number): void => {
    if (index > next) drawn.push(gap(`gap ${drawn.length === 0 ? "above" : index === count ? "below" : "between"}`));
    function gap(key: string): JSX.Element {
      return (
        // biome-ignore lint/a11y/noAriaHiddenOnFocusable: this row is only a spacer and cannot be focused
        <tr key={key} class="gap" aria-hidden="true" style={{ height: `${(index - next) * rowHeightPx}px` }}>
          <td colSpan={columnCount} />
        </tr>
      );
    }
  };
  for (const index of indexes(span, keep, count)) {
    gapBefore(index);
    drawn.push(row(index));
    next = index + 1;
  }
  gapBefore(count);
  return <tbody ref={body}>{drawn}</tbody>;
}

/** The indexes of the visible rows and the one to keep, in order. */
function indexes({ from, to }: Span, keep: number, count: number): number[] {
  const seen: number[] = [];
  const end = Math.min(to, count);
  const isKept = keep >= 0 && keep < count;
  if (isKept && keep < from) seen.push(keep);
  for (let index = Math.min(from, end); index < end; index += 1) seen.push(index);
  if (isKept && keep >= end) seen.push(keep);
  return seen;
}

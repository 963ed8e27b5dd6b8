/**
 * A table with any number of rows: sortable, with only the visible rows in the document, and keyboard navigation with
 * j and k.
 *
 * While a row has the focus, rows do not move: changes appear in place, removed rows stay dimmed, and new rows are
 * counted in the bottom line. Otherwise a row could jump away just before a click. While the list is still being
 * read, rows do not move either (`useStill`).
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "../format.js";
import { useViewportWidth } from "../viewport.js";
import { rowControl } from "./row-control.js";
import { useStill } from "./still.js";
import { VirtualRows } from "./virtual-rows.js";

/** One column. */
export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  /**
   * CSS width: `7rem`. Columns without a width share the remaining space; in narrow windows the first column does
   * too.
   */
  readonly width?: string;
  /** The width in narrow windows, if different. */
  readonly narrowWidth?: string;
  /** Shown only if the window is at least this wide, in px; always if absent. */
  readonly fromPx?: number;
  readonly isNumber?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
  /** The sort key; a column without one cannot be sorted. */
  readonly sortBy?: (row: Row) => string | number;
}

/** The props of the table. */
export interface DataTableProps<Row> {
  /** Describes the table to screen readers. */
  readonly caption: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** The link of a row; absent: rows have no link. */
  readonly hrefOf?: (row: Row) => string;
  /** A second line below the first column in windows too narrow for the other columns. */
  readonly underline?: (row: Row) => ComponentChildren;
  /** The column to sort by, with `-` before it for descending order. Absent: unsorted. */
  readonly sort?: string | undefined;
  readonly onSort?: (sort: string) => void;
  readonly empty: ComponentChildren;
  /** Whether j and k move in this table; at most one table per page. */
  readonly isMain?: boolean;
  /** Whether more rows are being read. */
  readonly isGrowing?: boolean;
  readonly rowHeightPx?: number;
}

/** Below this window width, the first column has a second line and most others are hidden. */
const NARROW_PX = 760;
const ROW_PX = 40;
const NARROW_ROW_PX = 60;

/** The table, or `empty` if there are no rows. */
export function DataTable<Row>(props: DataTableProps<Row>): JSX.Element {
  const { caption, columns, keyOf, empty, sort, onSort, underline, isMain = false } = props;
  const width = useViewportWidth();
  const isNarrow = width < NARROW_PX;
  const shownColumns = columns.filter(({ fromPx = 0 }) => width >= fromPx);
  const rowHeightPx = isNarrow && underline !== undefined ? NARROW_ROW_PX : (props.rowHeightPx ?? ROW_PX);
  const { isGrowing = false } = props;
  const { rows: ordered, point } = useStill(sorted(props.rows, columns, sort), keyOf, { isGrowing, sort });

  const table = useRef<HTMLTableElement>(null);
  const [standing, setStanding] = useState<readonly Row[] | undefined>();
  const [focused, setFocused] = useState(-1);
  const wanted = useRef(-1);
  const { rows, gone, newCount } = stillOrdered(ordered, standing, keyOf);

  const drawn = useDrawn([columns, props.hrefOf, isNarrow && underline, width]);

  const leave = (): void => {
    setStanding(undefined);
    setFocused(-1);
  };
  // A row that was just added to the document can be focused only now.
  useLayoutEffect(() => {
    if (wanted.current < 0) return;
    const row = table.current?.querySelector<HTMLElement>(`tr[data-index="${wanted.current}"]`);
    const target = row?.querySelector<HTMLElement>("a, button") ?? row;
    if (target === undefined || target === null) return;
    wanted.current = -1;
    target.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  });
  const latest = useRef({ rows, focused });
  latest.current = { rows, focused };
  useEffect(() => {
    if (!isMain) return undefined;
    const move = (step: 1 | -1): void => {
      const { rows: now, focused: from } = latest.current;
      if (now.length === 0) return;
      const to = from < 0 ? firstInSight(table.current) : Math.min(now.length - 1, Math.max(0, from + step));
      wanted.current = to;
      setStanding((before) => before ?? now);
      setFocused(to);
    };
    rowControl.set(move);
    return () => {
      if (rowControl.value === move) rowControl.set(undefined);
    };
  }, [isMain]);

  if (rows.length === 0) return <div class="empty">{empty}</div>;
  return (
    <>
      <table
        ref={table}
        class={isNarrow ? "data narrow" : "data"}
        aria-rowcount={rows.length + 1}
        onPointerMove={({ target }) =>
          point(target instanceof HTMLElement && target.closest("tr[data-index]") !== null)
        }
        onPointerLeave={() => point(false)}
        onFocusIn={({ target }) => {
          const row = target instanceof HTMLElement ? target.closest<HTMLElement>("tr[data-index]") : null;
          if (row === null) return;
          setStanding((before) => before ?? rows);
          setFocused(Number(row.dataset.index));
        }}
        onFocusOut={({ relatedTarget }) => {
          const isInside = relatedTarget instanceof Node && table.current?.contains(relatedTarget);
          // If the window lost the focus, the row stays focused, so the order must not change.
          if (isInside || (relatedTarget === null && !document.hasFocus())) return;
          if (wanted.current < 0) leave();
        }}
      >
        <caption class="hidden">{caption}</caption>
        <colgroup>
          {shownColumns.map((column, i) => (
            <col key={column.id} style={{ width: columnWidth(column, isNarrow, i === 0) }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {shownColumns.map((column) => (
              <Heading key={column.id} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <VirtualRows
          count={rows.length}
          columnCount={shownColumns.length}
          rowHeightPx={rowHeightPx}
          keep={focused}
          row={(index) => {
            const row = rows[index] as Row;
            const key = keyOf(row);
            const isGone = gone.has(key);
            const href = props.hrefOf?.(row);
            return drawn(key, [row, index, isGone], () => (
              <tr
                key={key}
                data-index={index}
                aria-rowindex={index + 2}
                class={isGone ? "gone" : undefined}
                style={{ height: `${rowHeightPx}px` }}
                tabIndex={href === undefined && isMain ? -1 : undefined}
              >
                {shownColumns.map((column, i) => (
                  <td key={column.id} class={column.isNumber === true ? "number" : undefined}>
                    {i > 0 ? (
                      column.cell(row)
                    ) : (
                      <>
                        {href === undefined ? (
                          column.cell(row)
                        ) : (
                          <a class="row-link" href={href}>
                            {column.cell(row)}
                          </a>
                        )}
                        {isGone && <span class="gone-note"> no longer in the list</span>}
                        {isNarrow && underline !== undefined && <div class="underline">{underline(row)}</div>}
                      </>
                    )}
                  </td>
                ))}
              </tr>
            ));
          }}
        />
      </table>
      {newCount > 0 && (
        <p class="note">
          {count(newCount, "more row")} since you entered the list. <kbd>Esc</kbd> leaves it and shows them.
        </p>
      )}
    </>
  );
}

type Draw = (key: string, facts: readonly unknown[], draw: () => JSX.Element) => JSX.Element;

/** Cached rows outside the visible area are discarded beyond this number. */
const DRAWN_AT_MOST = 400;

/**
 * Caches rendered rows until their data changes. Scrolling then renders only rows that come into view, and an update
 * of ten thousand locks renders only those that have changed. `all`: the values that every row depends on.
 */
function useDrawn(all: readonly unknown[]): Draw {
  const kept = useRef({ all, rows: new Map<string, { facts: readonly unknown[]; element: JSX.Element }>() });
  if (!areSame(kept.current.all, all)) kept.current = { all, rows: new Map() };
  const { rows } = kept.current;
  return (key, facts, draw) => {
    const before = rows.get(key);
    if (before !== undefined && areSame(before.facts, facts)) return before.element;
    if (rows.size >= DRAWN_AT_MOST) rows.clear();
    const element = draw();
    rows.set(key, { facts, element });
    return element;
  };
}

function areSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.every((one, i) => Object.is(one, b[i]));
}

interface HeadingProps<Row> {
  readonly column: Column<Row>;
  readonly sort: string | undefined;
  readonly onSort: ((sort: string) => void) | undefined;
}

function Heading<Row>({ column, sort, onSort }: HeadingProps<Row>): JSX.Element {
  const isSorted = sort === column.id || sort === `-${column.id}`;
  const isDown = sort === `-${column.id}`;
  const numberClass = column.isNumber === true ? "number" : undefined;
  if (column.sortBy === undefined || onSort === undefined)
    return (
      <th scope="col" class={numberClass}>
        {column.title}
      </th>
    );
  return (
    <th scope="col" class={numberClass} aria-sort={isSorted ? (isDown ? "descending" : "ascending") : undefined}>
      <button type="button" class="sort" onClick={() => onSort(isSorted && !isDown ? `-${column.id}` : column.id)}>
        {column.title}
        <span class="arrow" aria-hidden="true">
          {isSorted ? (isDown ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

function columnWidth<Row>(column: Column<Row>, isNarrow: boolean, isFirst: boolean): string {
  if (!isNarrow) return column.width ?? "auto";
  return isFirst ? "auto" : (column.narrowWidth ?? column.width ?? "auto");
}

function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: string | undefined): readonly Row[] {
  const sortBy = columns.find(({ id }) => id === sort?.replace("-", ""))?.sortBy;
  if (sort === undefined || sortBy === undefined) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const keyed = rows.map((row) => ({ row, by: sortBy(row) }));
  keyed.sort((a, b) => sign * (a.by < b.by ? -1 : a.by > b.by ? 1 : 0));
  return keyed.map(({ row }) => row);
}

function stillOrdered<Row>(
  ordered: readonly Row[],
  standing: readonly Row[] | undefined,
  keyOf: (row: Row) => string,
): { rows: readonly Row[]; gone: ReadonlySet<string>; newCount: number } {
  if (standing === undefined) return { rows: ordered, gone: new Set(), newCount: 0 };
  const now = new Map(ordered.map((row) => [keyOf(row), row]));
  const gone = new Set<string>();
  const rows = standing.map((before) => {
    const key = keyOf(before);
    const row = now.get(key);
    if (row === undefined) gone.add(key);
    return row ?? before;
  });
  return { rows, gone, newCount: now.size - (standing.length - gone.size) };
}

/** The first visible row below the header, where keyboard navigation starts. */
function firstInSight(table: HTMLTableElement | null): number {
  const headPx = table?.tHead?.getBoundingClientRect().bottom ?? 0;
  for (const row of table?.querySelectorAll<HTMLElement>("tr[data-index]") ?? [])
    if (row.getBoundingClientRect().top >= headPx - 1) return Number(row.dataset.index);
  return 0;
}

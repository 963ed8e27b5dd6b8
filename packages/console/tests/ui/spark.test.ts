/** The small chart of the last samples. */
import { describe, expect, it } from "vitest";

interface Element {
  readonly type: string;
  readonly props: Readonly<Record<string, unknown>>;
}

interface Charts {
  Spark(props: { readonly points: readonly number[]; readonly noun: string }): Element;
}

// A dynamic path that the compiler does not follow, because browser types conflict with the Node types of other
// tests.
const SPARK = new URL("../../src/ui/parts/spark.tsx", import.meta.url).pathname;
const { Spark }: Charts = await import(SPARK);

function chartOf(...points: number[]): Element {
  return Spark({ points, noun: "waiters" });
}

/** The child elements of a chart, by tag. */
function partsOf({ props }: Element): ReadonlyMap<string, Element["props"]> {
  const children = (props.children as readonly (Element | false)[]).filter((child) => child !== false);
  return new Map(children.map((child) => [child.type, child.props]));
}

/** The points of the line, from left to right. */
function lineOf(chart: Element): readonly { readonly x: number; readonly y: number }[] {
  const points = String(partsOf(chart).get("polyline")?.points).split(" ");
  return points.map((point) => {
    const [x, y] = point.split(",").map(Number);
    return { x: x ?? Number.NaN, y: y ?? Number.NaN };
  });
}

describe("the small chart", () => {
  it("has a label with the time span, the range and the latest value", () => {
    const { type, props } = chartOf(1, 4, 2);
    expect([type, props.role, props["aria-label"]]).toEqual(["svg", "img", "waiters, last 30s: 1–4, now 2"]);
    expect(chartOf(...Array.from({ length: 30 }, () => 7)).props["aria-label"]).toBe("waiters, last 5m00s: 7–7, now 7");
  });

  it("has a scale from zero to the highest value, and a dot at the latest one", () => {
    const chart = chartOf(1, 4, 2);
    const base = Number(partsOf(chart).get("line")?.y1);
    const top = 2;
    const [lowest, highest, latest] = lineOf(chart);
    expect(highest?.y).toBe(top);
    expect(lowest?.y).toBe(base - (base - top) / 4);
    expect(latest?.y).toBe(base - (base - top) / 2);
    expect(partsOf(chart).get("circle")).toMatchObject({ cx: latest?.x, cy: latest?.y });
  });

  it("has the same time scale for any number of points, and the latest one at the right edge", () => {
    const [few, many] = [lineOf(chartOf(1, 2, 3)), lineOf(chartOf(...Array.from({ length: 30 }, (_, i) => i)))];
    expect(few).toHaveLength(3);
    expect(many).toHaveLength(30);
    expect(few.map(({ x }) => x)).toEqual(many.slice(-3).map(({ x }) => x));
    expect([many[0]?.x, many.at(-1)?.x]).toEqual([2, Number(chartOf(1).props.width) - 2]);
  });

  it("is a flat line without an area if all values are 0, and a dash if there are none", () => {
    const quiet = chartOf(0, 0);
    expect(quiet.props.class).toBe("spark quiet");
    expect(partsOf(quiet).has("polygon")).toBe(false);
    expect(partsOf(chartOf(0, 1)).has("polygon")).toBe(true);
    const none = chartOf();
    expect([none.type, none.props.children]).toEqual(["span", "–"]);
  });
});

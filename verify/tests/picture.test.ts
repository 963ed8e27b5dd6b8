import { describe, expect, it } from "vitest";

import { check } from "../src/checker/index.js";
import { historyOf } from "../src/history/index.js";
import type { HistoryRecord } from "../src/history/records.js";
import { ownerAware, timed } from "../src/models/index.js";
import { picture } from "../src/picture/index.js";
import { rowsOf, scale, ticks } from "../src/picture/layout.js";
import { escapeXml, fit, widthOf } from "../src/picture/svg.js";
import { leaseExclusion } from "../src/sweeps/index.js";
import { operations } from "./histories.js";

const LINES = [
  "A acquire 0-5 ok token=7 valid=90",
  "B acquire 10-50 ok token=8 valid=140",
  "C acquire 20-22 no busy",
  "B release 60- info",
];

const all: readonly HistoryRecord[] = [
  ...operations(LINES),
  { type: "lost", atMs: 80, process: "A", lockName: "orders", leaseId: 0 },
  { type: "held", atMs: 70, process: "A", lockName: "orders", leaseId: 0, isHeld: true, token: 7, validUntilMs: 90 },
  { type: "fault", id: "J29", beganMs: 30, endedMs: 40, target: "server", proof: "TIME jumped" },
  {
    type: "effect",
    atMs: 6,
    resource: "stock",
    sequence: 1,
    process: "A",
    lockName: "orders",
    leaseId: 0,
    token: 7,
    isAccepted: true,
    isAcknowledged: true,
    value: "v",
  },
];

/** Whether all elements are closed in order, with only text between them. */
function isWellFormed(svg: string): boolean {
  const open: string[] = [];
  const rest = svg.replace(
    /<(\/?)([a-z]+)((?: [\w-]+="[^"<&]*(?:&\w+;|&#39;|[^"<&])*")*)(\/?)>/gi,
    (_, closes, name, _attributes, isEmpty) => {
      if (closes === "/") return open.pop() === name ? "" : "<";
      if (isEmpty !== "/") open.push(name);
      return "";
    },
  );
  return open.length === 0 && !rest.includes("<") && !/&(?!amp;|lt;|gt;|quot;|#39;)/.test(rest);
}

it("the check for well-formed XML finds malformed XML", () => {
  for (const broken of ["<a>", "<a><b></a></b>", '<a b="&"/>', "<a>&</a>", '<a b="<"/>'])
    expect(isWellFormed(broken)).toBe(false);
});

describe("a picture", () => {
  it("is well-formed, self-contained and reproducible", () => {
    const draw = (): string => picture(historyOf(all), { title: "all" });
    const svg = draw();
    expect(isWellFormed(svg)).toBe(true);
    expect(svg).not.toMatch(/href|url\(|<script|<image|@import/);
    expect(draw()).toBe(svg);
  });

  it("has a lane for each process, each lease with its token, faults and effects", () => {
    const svg = picture(historyOf(all), { title: "all" });
    for (const text of [
      "A",
      "B",
      "C",
      "acquire ✓ #7",
      "acquire ✗ busy",
      "release ?",
      "holds #8",
      "J29 server",
      "stock",
    ])
      expect(svg).toContain(`>${text}</text>`);
  });

  it("shows violations in red, with their text, and nothing else in red", () => {
    const history = historyOf(all);
    const [violation] = leaseExclusion(history).violations;
    const svg = picture(history, { title: "S2", ...(violation && { violation }) });
    expect(svg).toContain(violation?.message.replaceAll('"', "&quot;"));
    // Two acquires, their two leases, and the entry in the legend.
    expect(svg.match(/class="[a-z]+ bad"/g)).toHaveLength(5);
    expect(picture(history, { title: "S2" }).match(/class="[a-z]+ bad"/g)).toHaveLength(1);
  });

  it("numbers the operations in the order that the checker found", () => {
    const { partials } = check(ownerAware(), timed(operations(LINES)));
    const svg = picture(historyOf(all), { title: "order", order: (partials[0] ?? []).map(({ value }) => value) });
    expect(svg.match(/class="order">\d+\./g)).toEqual(['class="order">1.', 'class="order">2.', 'class="order">1.']);
  });

  it("accepts any name", () => {
    const [first] = operations(["A acquire 0-5 ok"]);
    const evil = { ...first, process: `"><script>alert(1)</script>&\u0000\ud800`, lockName: "]]>" } as HistoryRecord;
    const svg = picture(historyOf([evil]), { title: "<&>" });
    expect(isWellFormed(svg)).toBe(true);
    expect(svg).not.toContain("<script");
  });

  it("shows only the given lock and the given window", () => {
    const other = operations(["Z acquire 0-5 ok"], "mutex", "other");
    const history = historyOf([...all, ...other]);
    expect(picture(history, { title: "one", lockName: "orders" })).not.toContain(">Z<");
    const late = picture(history, { title: "late", lockName: "orders", fromMs: 55, untilMs: 100 });
    expect(late).toContain("release ?");
    expect(late).not.toContain("acquire ✓");
  });

  it("is possible for an empty history", () => {
    expect(isWellFormed(picture(historyOf([]), { title: "empty" }))).toBe(true);
  });
});

it("instants on the axis are round, and stay within the window", () => {
  expect(ticks(scale(0.2, 1, 0, 500))).toEqual([0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(scale(1_700_000, 1_705_000, 0, 500))).toEqual([
    1_700_000, 1_701_000, 1_702_000, 1_703_000, 1_704_000, 1_705_000,
  ]);
});

it("items that would touch get another row", () => {
  const extents = [
    { left: 0, right: 10 },
    { left: 12, right: 20 },
    { left: 15, right: 30 },
    { left: 40, right: 50 },
  ];
  expect(rowsOf(extents, 5)).toEqual([0, 1, 0, 0]);
});

it("a label is cut between characters to fit, and escaped", () => {
  expect(fit("lock 🔒🔒🔒", widthOf("lock 🔒🔒"))).toBe("lock 🔒…");
  expect(escapeXml(`<a b="c">&'`)).toBe("&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
});

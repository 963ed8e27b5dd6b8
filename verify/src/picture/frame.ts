/** Draws what surrounds the lanes: the time grid, the faults, the protected resources and the legend. */
import { groupBy } from "../history/history.js";
import type { Effect, Fault, HistoryRecord } from "../history/records.js";
import { type Scale, ticks } from "./layout.js";
import { element, fit, label, tooltip, widthOf } from "./svg.js";

/** The time axis, with a vertical line through all lanes at each tick. */
export function drawGrid(window: Scale, axis: number, bottom: number): string {
  const lines = ticks(window).map((atMs) => {
    const x = window.x(atMs);
    return (
      element("line", { x1: x, x2: x, y1: axis, y2: bottom, class: "grid" }) +
      label(`${atMs}`, { x, y: axis - 5, class: "faint", "text-anchor": "middle" })
    );
  });
  return label("ms", { x: 20, y: axis - 5, class: "faint" }) + lines.join("");
}

/** The faults as bands across all lanes. A fault without an end extends to the edge. */
export function drawFaults(
  faults: readonly Fault[],
  window: Scale,
  top: number,
  bottom: number,
  red: ReadonlySet<HistoryRecord>,
): string {
  return faults
    .filter(({ beganMs, endedMs }) => window.shows(beganMs, endedMs))
    .map((fault) => {
      const { id, target, beganMs, endedMs, proof } = fault;
      const x = window.x(beganMs);
      const width = Math.max(2, window.x(endedMs) - x);
      const text = `${id} ${target}`;
      const isAtEdge = x + widthOf(text) > window.right;
      return element(
        "g",
        {},
        tooltip(`${text}: ${proof ?? "no proof that it struck"}`),
        element("rect", { x, y: top, width, height: bottom - top, class: red.has(fault) ? "fault bad" : "fault" }),
        label(text, {
          x: isAtEdge ? x - 4 : x + 3,
          y: bottom + 13,
          class: "faint",
          ...(isAtEdge && { "text-anchor": "end" }),
        }),
      );
    })
    .join("");
}

/** Where to draw the effects. */
export interface EffectsPlace {
  readonly window: Scale;
  readonly top: number;
  readonly red: ReadonlySet<HistoryRecord>;
  readonly width: number;
}

/** A lane for each protected resource: a filled mark for an accepted effect, a hollow one for a refused effect. */
export function drawEffects(
  effects: readonly Effect[],
  place: EffectsPlace,
): { readonly svg: string; readonly height: number } {
  const { window, top, red, width } = place;
  const resources = [...groupBy(effects, ({ resource }) => resource)];
  const svg = resources.map(([resource, own], index) => {
    const y = top + index * 34;
    let free = window.left - 40;
    const marks = own
      .filter(({ atMs }) => window.shows(atMs, atMs))
      .map((effect) => {
        const x = window.x(effect.atMs);
        const style = effect.isAccepted ? "held" : "over";
        const token = effect.token === null ? effect.value : `#${effect.token}`;
        const said = effect.isAccepted ? "accepted" : "refused";
        // Where effects are close together, only some show their token. The tooltip of each shows it.
        const hasRoom = x - widthOf(token) / 2 >= free;
        if (hasRoom) free = x + widthOf(token) / 2 + 4;
        return element(
          "g",
          {},
          tooltip(
            `${said} ${effect.value} of ${effect.process}, token ${effect.token ?? "none"}, number ${effect.sequence}`,
          ),
          element("circle", { cx: x, cy: y + 12, r: 5, class: red.has(effect) ? `${style} bad` : style }),
          hasRoom ? label(token, { x, y: y + 29, class: "faint", "text-anchor": "middle" }) : "",
        );
      });
    return [
      element("line", { x1: 0, x2: width, y1: y + 34, y2: y + 34, class: "line" }),
      label(fit(resource, 105), { x: 20, y: y + 16, class: "lane" }),
      ...marks,
    ].join("");
  });
  return { svg: svg.join(""), height: resources.length * 34 };
}

/** The legend, in one line. */
export function drawLegend(y: number): string {
  const swatch = (style: string) => (x: number) =>
    element("rect", { x, y: y - 9, width: 18, height: 11, rx: 2, class: style });
  const dot = (style: string) => (x: number) => element("circle", { cx: x + 9, cy: y - 4, r: 4, class: style });
  const cross = (x: number): string => element("path", { d: `M${x + 5} ${y - 8}l8 8m0 -8l-8 8`, class: "lost" });
  const signs: readonly (readonly [draw: (x: number) => string, text: string])[] = [
    [swatch("ok"), "ok"],
    [swatch("no"), "refused"],
    [swatch("info"), "outcome unknown"],
    [swatch("lease"), "lease relied upon"],
    [dot("held"), "held / accepted"],
    [dot("over"), "over / refused"],
    [cross, "lost"],
    [swatch("fault"), "fault"],
    [swatch("ok bad"), "may not happen"],
    [(x) => label("1.", { x: x + 2, y, class: "order" }), "place in the order found"],
  ];
  let x = 20;
  return signs
    .map(([draw, text]) => {
      const sign = draw(x) + label(text, { x: x + 23, y, class: "faint" });
      x += 23 + widthOf(text) + 16;
      return sign;
    })
    .join("");
}

/** The tables of the report: the matrix in colors, and the peers side by side. */
import { groupBy } from "../../history/history.js";
import type { Cell } from "../cell.js";
import { BESIDE, COLUMNS, ROWS } from "../matrix.js";
import type { CellVerdict } from "../verdict.js";
import { anchorOf, markClass, outcomeText, worstOf } from "./cells.js";
import type { SubjectFacts } from "./data.js";
import { type Html, html } from "./html.js";

const SIGN = { kept: "0", broken: "!", reported: "~", refused: "R" } as const;

/** All cells, colored by result; cells that did not run look different. */
export function matrixTable(verdicts: readonly CellVerdict[]): Html {
  const byCell = groupBy(verdicts, ({ cell }) => cell.id);
  const rows = ROWS.map(
    ({ row, title, cells }) =>
      html`<tr><th class="id">${row}</th><td>${title}</td>${COLUMNS.map((column) => {
        const marks = [...new Set([...cells, ...BESIDE.filter((cell) => cell.row === row)])]
          .filter((cell) => cell.column === column)
          .map((cell) => mark(cell, byCell.get(cell.id) ?? []));
        return html`<td>${marks.length > 0 ? marks : "·"}</td>`;
      })}</tr>`,
  );
  const heads = COLUMNS.map((column) => html`<th>${column}</th>`);
  return html`<div class="wide"><table><thead><tr><th></th><th>fault</th>${heads}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function mark(cell: Cell, verdicts: readonly CellVerdict[]): Html {
  const worst = worstOf(verdicts);
  const text = `${cell.letter} ${SIGN[cell.expectation]}`;
  if (worst === undefined) return html`<span class="mark unrun" title="not run">${text}</span>`;
  const title = outcomeText(worst);
  return html`<a class="mark ${markClass(worst)}" href="#${anchorOf(worst)}" title="${title}">${text}</a>`;
}

/** Explains the colors and signs. */
export function legend(): Html {
  const meanings = [
    ["ok", "0", "promised, and kept"],
    ["shown", "!", "not promised, and the violation appeared, as it must"],
    ["reported", "~", "not promised: counted only"],
    ["violation", "0", "promised, and violated"],
    ["void", "0", "the run shows nothing, has no teeth, or did not finish"],
    ["unrun", "0", "not run"],
  ] as const;
  return html`<p>${meanings.map(([name, sign, text]) => html`<span class="mark ${name}">${sign}</span> ${text} &nbsp; `)}</p>
<p class="faint">m mutex, r re-entrant, w read-write, s semaphore, f fair, k multi-lock, t fenced, a renewed, l latch; e election, b barrier, c condition, in additional cells that the reference matrix does not have.
1n one server without a file, 1e synced every second, 1a synced at every write; T behind Sentinel, C a cluster, Q3 and Q5 a lock on 3 or 5 independent servers, which has one kind only: cells marked r or k there run a mutex.</p>`;
}

/** The cells that at least one peer ran, with a column for each subject. */
export function peerTable(verdicts: readonly CellVerdict[], subjects: readonly SubjectFacts[]): Html {
  const ran = subjects.filter(({ name }) => verdicts.some(({ subject }) => subject === name));
  const rows = [...groupBy(verdicts, ({ cell }) => cell.id).values()]
    .filter((all) => all.some(({ subject }) => subject !== "holdfast"))
    .map((all) => {
      const fields = ran.map(({ name }) => peerField(worstOf(all.filter(({ subject }) => subject === name))));
      const [first] = all;
      return html`<tr><th class="id">${first?.cell.id ?? ""}</th><td>${first?.cell.expectation ?? ""}</td>${fields}</tr>`;
    });
  const heads = ran.map(({ name, version }) => html`<th>${name}<br><span class="faint">${version}</span></th>`);
  return html`<div class="wide"><table><thead><tr><th>cell</th><th>promised</th>${heads}</tr></thead>
<tbody>${rows}</tbody></table></div>
<ul>${ran.map(({ name, version, settings }) => html`<li><b>${name} ${version}</b>: ${settings}</li>`)}</ul>`;
}

function peerField(verdict: CellVerdict | undefined): Html {
  if (verdict === undefined) return html`<td class="faint" title="not run, or not offered">·</td>`;
  const properties = [...groupBy(verdict.breaches, ({ property }) => property)];
  const seen = properties.map(([property, breaches]) => `${property} × ${breaches.length}`).join(", ");
  const text = seen === "" ? verdict.outcome : seen;
  return html`<td><a class="mark ${markClass(verdict)}" href="#${anchorOf(verdict)}">${text}</a></td>`;
}

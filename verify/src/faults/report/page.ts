/** The report page: what ran, the results, and pictures of the violations. */
import { groupBy } from "../../history/history.js";
import { ROWS } from "../matrix.js";
import { showDuration } from "../progress.js";
import { totalsOf } from "../summary.js";
import type { CellVerdict } from "../verdict.js";
import { cellSection } from "./cells.js";
import type { ReportData } from "./data.js";
import { Html, html } from "./html.js";
import type { PartResult } from "./results.js";
import { STYLE } from "./style.js";
import { legend, matrixTable, peerTable } from "./tables.js";

/** The report as a self-contained HTML file. */
export function page(data: ReportData): string {
  const { verdicts, facts, parts } = data;
  const own = verdicts.filter(({ subject }) => subject === "holdfast");
  const peers = verdicts.filter(({ subject }) => subject !== "holdfast");
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Holdfast: verification</title><style>${new Html(STYLE)}</style></head>
<body>
<h1>Holdfast: verification</h1>
${overview(data, own)}
${parts.length > 0 ? html`<h2>Simulation, search, teeth</h2>${parts.map(partSection)}` : ""}
<h2>Fault matrix</h2>
${legend()}
${matrixTable(own)}
<h2>Cells</h2>
${sections(own, data)}
${peers.length > 0 ? html`<h2>Peers in the same cells</h2>${peerTable(verdicts, facts.subjects)}${sections(peers, data)}` : ""}
</body></html>
`.text;
}

function overview({ facts, versions, writtenAt }: ReportData, own: readonly CellVerdict[]): Html {
  const { passed, failed, unavailable, runs, operations, faults } = totalsOf(own);
  const figures: readonly (readonly [string, string | number])[] = [
    ["cells that passed", passed],
    ["cells that failed", failed],
    ["cells that this machine cannot run", unavailable],
    ["runs", runs],
    ["operations", operations.toLocaleString("en")],
    ["faults that struck", faults.toLocaleString("en")],
    ["took", showDuration(facts.tookMs)],
  ];
  const set = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return html`<p class="faint">${writtenAt}; ${set.join(", ")}; seed ${facts.seed}, ${facts.lastsMs / 1_000} s per cell,
${facts.jobs} cells at the same time.</p>
<ul class="figures">${figures.map(([name, value]) => html`<li><b>${value}</b>${name}</li>`)}</ul>`;
}

function partSection({ title, passed, failed, tookMs, facts, columns, rows }: PartResult): Html {
  const said = Object.entries(facts).map(([name, value]) => `${name}: ${value}`);
  const table = html`<div class="wide"><table><thead><tr>${columns.map((column) => html`<th>${column}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((field) => html`<td>${field}</td>`)}</tr>`)}</tbody></table></div>`;
  return html`<h3>${title} <span class="mark ${failed > 0 ? "violation" : "ok"}">${passed} passed, ${failed} failed</span></h3>
<p class="faint">${[...(tookMs > 0 ? [showDuration(tookMs)] : []), ...said].join("; ")}</p>
${rows.length > 0 ? html`<details><summary>${rows.length} rows</summary>${table}</details>` : ""}`;
}

/** One section per cell, in the order of the matrix. */
function sections(verdicts: readonly CellVerdict[], { facts }: ReportData): Html {
  const order = new Map(ROWS.map(({ row }, index) => [row, index]));
  const groups = [...groupBy(verdicts, ({ cell, subject }) => `${subject} ${cell.id}`).values()];
  const place = (all: readonly CellVerdict[]): number => order.get(all[0]?.cell.row ?? "") ?? 0;
  return html`${groups.toSorted((a, b) => place(a) - place(b)).map((all) => cellSection(all, facts))}`;
}

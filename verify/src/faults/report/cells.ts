/** Each cell with its runs: the fault, the decided properties, the violations and their pictures. */
import { rowNamed } from "../matrix.js";
import { isPromised, isWanted } from "../outcome.js";
import { showDuration } from "../progress.js";
import { replayOf } from "../summary.js";
import type { Breach, CellOutcome, CellVerdict } from "../verdict.js";
import type { RunFacts } from "./data.js";
import { Html, html, image } from "./html.js";

/** Pictures are large, and a third shows nothing new. */
const PICTURES = 2;
const BREACHES = 5;
const RUNS = 4;
/** The worst first. */
const ORDER: readonly CellOutcome[] = ["violation", "void", "toothless", "unknown", "unavailable", "ok"];

/** The worst verdict over all runs of a cell. */
export function worstOf(verdicts: readonly CellVerdict[]): CellVerdict | undefined {
  return byWorst(verdicts)[0];
}

/** The CSS class for the mark of a verdict. It sets the color. */
export function markClass({ outcome, cell }: CellVerdict): string {
  if (outcome !== "ok") return outcome;
  if (cell.expectation === "broken") return "shown";
  return cell.expectation === "reported" ? "reported" : "ok";
}

/** The outcome as text, which depends on what the cell expects. */
export function outcomeText({ outcome, cell }: CellVerdict): string {
  if (outcome === "ok" && cell.expectation === "broken") return "shown: the violation that had to appear";
  if (outcome === "ok" && cell.expectation === "reported") return "reported: nothing is promised";
  if (outcome === "ok") return cell.expectation === "refused" ? "refused, as it must be" : "kept";
  const texts: Readonly<Record<Exclude<CellOutcome, "ok">, string>> = {
    violation: "VIOLATION of something promised",
    toothless: "toothless: no violation although nothing is promised",
    void: "void: the run shows nothing",
    unknown: "unknown: the search did not finish",
    unavailable: "not run: this machine cannot cause the fault",
  };
  return texts[outcome];
}

/** The id that links to a cell use. */
export function anchorOf({ cell, subject }: CellVerdict): string {
  return `${subject}-${cell.id}`.replaceAll(/[^\w-]/g, "-");
}

/** A collapsible section for all runs of one cell with one subject. */
export function cellSection(verdicts: readonly CellVerdict[], facts: RunFacts): Html {
  const ordered = byWorst(verdicts);
  const [worst] = ordered;
  if (worst === undefined) return new Html("");
  const { cell, outcome } = worst;
  const faults = verdicts.reduce((sum, run) => sum + run.faults, 0);
  const operations = verdicts.reduce((sum, run) => sum + run.operations, 0);
  const runs = verdicts.length === 1 ? "1 run" : `${verdicts.length} runs`;
  const isOpen = outcome !== "ok" && outcome !== "unavailable" && worst.subject === "holdfast";
  return html`<details id="${anchorOf(worst)}"${new Html(isOpen ? " open" : "")}>
<summary><span class="id">${cell.id}</span> <span class="mark ${markClass(worst)}">${outcomeText(worst)}</span>
<span class="faint">${rowNamed(cell.row).title}; ${runs}, ${operations} operations, ${faults} faults</span></summary>
${ordered.slice(0, RUNS).map((verdict) => runSection(verdict, facts))}
${ordered.length > RUNS ? html`<p class="faint">and ${ordered.length - RUNS} more runs, none of them worse</p>` : ""}
</details>`;
}

function runSection(verdict: CellVerdict, { lastsMs }: RunFacts): Html {
  const { cell, seed, breaches, checked, notes, tookMs, operations, faults, subject } = verdict;
  const decided = Object.entries(checked);
  const isPeer = subject !== "holdfast";
  const isBad = (breach: Breach): boolean => isPeer || isPromised(cell, breach, subject);
  const bad = breaches.filter(isBad);
  const wanted = cell.expectation === "broken" ? breaches.filter((breach) => isWanted(cell, breach)) : breaches;
  const shown = [...bad, ...(wanted.length > 0 ? wanted : breaches).filter((breach) => !isBad(breach))];
  const more = shown.length - BREACHES;
  return html`<h3>seed ${seed}: ${operations} operations, ${faults} faults, ${showDuration(tookMs)}</h3>
${decided.length > 0 ? html`<p>Cases decided: ${decided.map(([id, count]) => html`<code>${id}</code> ${count}; `)}</p>` : ""}
${notes.length > 0 ? html`<ul>${notes.map((note) => html`<li>${note}</li>`)}</ul>` : ""}
${shown.slice(0, BREACHES).map((breach, index) => breachSection(breach, isBad(breach), index < PICTURES))}
${more > 0 ? html`<p class="faint">and ${more} more of them</p>` : ""}
<pre>${replayOf(verdict, lastsMs)}</pre>`;
}

function breachSection({ property, lockName, message, picture }: Breach, isBad: boolean, isPictured: boolean): Html {
  const words = html`<p class="${isBad ? "breach" : "wanted"}"><b>${property}</b> ${message}</p>`;
  if (picture === undefined || !isPictured) return words;
  return html`${words}\n${image(picture, `${property} of ${lockName}: ${message}`)}`;
}

function byWorst(verdicts: readonly CellVerdict[]): CellVerdict[] {
  const rank = ({ outcome }: CellVerdict): number => ORDER.indexOf(outcome);
  return verdicts.toSorted((a, b) => rank(a) - rank(b) || b.breaches.length - a.breaches.length || a.seed - b.seed);
}

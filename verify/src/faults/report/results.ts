/**
 * Reads what other parts of the verification leave for the report: small JSON files with one result or a list of them.
 *
 *     { "part": "simulation", "title": "Simulated seeds", "passed": 20000, "failed": 0, "tookMs": 61234,
 *       "facts": { "grants": 81234 }, "columns": ["kind", "seeds"], "rows": [["mutex", "2222"]] }
 *
 * `facts`, `columns` and `rows` may be absent. The simulation and the teeth have formats of their own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The result of one part. */
export interface PartResult {
  /** The name of the part. If several results have it, the one read last is shown. */
  readonly part: string;
  readonly title: string;
  readonly passed: number;
  readonly failed: number;
  readonly tookMs: number;
  readonly facts: Readonly<Record<string, string | number>>;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/**
 * Returns every result in these directories. Missing directories and files without a result are skipped.
 *
 * @throws SyntaxError  a file claims to be a result and lacks required fields
 */
export function readResults(directories: readonly string[]): PartResult[] {
  const found = new Map<string, PartResult>();
  for (const directory of directories) {
    for (const file of filesIn(directory)) {
      const value: unknown = JSON.parse(readFileSync(join(directory, file), "utf8"));
      for (const each of Array.isArray(value) ? value : [value]) {
        const result = resultOf(each, file);
        if (result !== undefined) found.set(result.part, result);
      }
    }
  }
  return [...found.values()];
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((file) => file.endsWith(".json"))
      .toSorted();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function resultOf(value: unknown, file: string): PartResult | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if ("seeds" in value && "byKind" in value) return simulated(value as Simulated);
  if ("teeth" in value) return bitten(value as Bitten);
  if (!("part" in value)) return undefined;
  const { part, title, passed, failed, tookMs = 0, facts = {}, columns = [], rows = [] } = value as Partial<PartResult>;
  if (typeof part !== "string" || typeof title !== "string" || !isCount(passed) || !isCount(failed))
    throw new SyntaxError(`${file} is not the result of a part: it needs part, title, passed and failed`);
  return { part, title, passed, failed, tookMs, facts, columns, rows };
}

/** The format of the simulation. */
interface Simulated {
  readonly seeds: number;
  readonly failed: number;
  readonly seedsPerMinute: number;
  readonly checked: Readonly<Record<string, number>>;
  readonly byKind: Readonly<
    Record<string, { readonly seeds: number; readonly grants: number; readonly failed: number }>
  >;
  readonly [figure: string]: unknown;
}

function simulated({ seeds, failed, seedsPerMinute, checked, byKind, ...figures }: Simulated): PartResult {
  const numbers = Object.entries(figures).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  const cases = Object.entries(checked).map(([property, count]) => `${property} ${count}`);
  return {
    part: "simulation",
    title: "Simulated seeds",
    passed: seeds - failed,
    failed,
    tookMs: (seeds / seedsPerMinute) * 60_000,
    facts: { ...Object.fromEntries(numbers), "seeds a minute": seedsPerMinute, "cases decided": cases.join(", ") },
    columns: ["kind", "seeds", "grants", "failed"],
    rows: Object.entries(byKind).map(([kind, own]) => [kind, `${own.seeds}`, `${own.grants}`, `${own.failed}`]),
  };
}

/** The format of the teeth. */
interface Bitten {
  readonly passed: number;
  readonly failed: number;
  readonly teeth: readonly {
    readonly id: string;
    readonly bugs: readonly string[];
    readonly mistake: string;
    readonly caughtBy: string;
    readonly isCaught: boolean;
  }[];
}

function bitten({ passed, failed, teeth }: Bitten): PartResult {
  return {
    part: "teeth",
    title: "Deliberate mistakes, and what caught them",
    passed,
    failed,
    tookMs: 0,
    facts: {},
    columns: ["mistake", "bugs", "what", "caught by"],
    rows: teeth.map(({ id, bugs, mistake, caughtBy, isCaught }) => [
      id,
      bugs.join(", "),
      mistake,
      isCaught ? caughtBy : "NOBODY",
    ]),
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * Makes known mistakes of other libraries in a copy of Holdfast, and checks that each is caught.
 *
 *     node verify/dist/teeth/main.js [--only B17,shared-owner] [--quick] [--jobs 2] [--write-docs] [--json FILE]
 *
 * Afterward the same catchers run on the unchanged code and must find nothing.
 */
import { readFileSync, writeFileSync } from "node:fs";
import process, { exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { BUGS } from "./bugs.js";
import { bite } from "./catch.js";
import { controlsOf } from "./controls.js";
import { catcherName, type Judged, teethTable, withTeeth } from "./document.js";
import { TEETH } from "./teeth.js";
import type { Tooth } from "./tooth.js";
import { Workbench } from "./workbench.js";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    quick: { type: "boolean", default: false },
    jobs: { type: "string", default: "2" },
    "write-docs": { type: "boolean", default: false },
    json: { type: "string" },
  },
});

/** The teeth for every change: those that the first few seeds catch. */
const QUICK: ReadonlySet<string> = new Set([
  "drift-added",
  "no-attempts-is-success",
  "shared-owner",
  "queue-forgets-the-living",
  "extension-plants-anew",
  "renewal-error-escapes",
  "leaving-compares-no-owner",
  "caller-ends-other-permits",
  "token-not-above-the-last",
  "dead-head-gets-it",
]);

function say(line: string): void {
  stdout.write(`${line}\n`);
}

function isWanted({ id, bugs }: Tooth): boolean {
  if (values.only === undefined) return !values.quick || QUICK.has(id);
  const names = values.only.split(",");
  return names.includes(id) || bugs.some((bug) => names.includes(bug));
}

/** Distributes the work over one workbench per job. */
async function share<Piece>(
  benches: readonly Workbench[],
  pieces: readonly Piece[],
  work: (bench: Workbench, piece: Piece) => Promise<void>,
): Promise<void> {
  const rest = [...pieces];
  const one = async (bench: Workbench): Promise<void> => {
    for (let piece = rest.shift(); piece !== undefined; piece = rest.shift()) await work(bench, piece);
  };
  await Promise.all(benches.map(one));
}

async function run(
  benches: readonly Workbench[],
  teeth: readonly Tooth[],
): Promise<{ judged: Judged[]; broken: string[] }> {
  const judged: Judged[] = [];
  await share(benches, teeth, async (bench, tooth) => {
    const result = await bite(bench, tooth);
    judged.push({ tooth, result });
    const count = result.count === 0 ? "" : ` (${result.count})`;
    const verdict = result.isCaught ? `caught by ${catcherName(tooth.catcher)}` : "NOT CAUGHT";
    say(`${[...tooth.bugs, tooth.id].join(" ")}: ${tooth.mistake}: ${verdict}${count}: ${result.how.slice(0, 200)}`);
  });
  const broken: string[] = [];
  const bites = judged.map(({ tooth: { catcher }, result: { count } }) => ({ catcher, count }));
  await share(benches, controlsOf(bites), async (bench, control) => {
    const wrong = await control.run(bench);
    if (wrong !== "") broken.push(control.what);
    say(`control, ${control.what}: ${wrong === "" ? "nothing found" : `FAILED: ${wrong}`}`);
  });
  judged.sort((a, b) => TEETH.indexOf(a.tooth) - TEETH.indexOf(b.tooth));
  return { judged, broken };
}

async function main(): Promise<number> {
  const teeth = TEETH.filter(isWanted);
  const benches: Workbench[] = [];
  const clear = (): void => {
    for (const bench of benches) bench.dispose();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      clear();
      exit(1);
    });
  }
  try {
    const first = new Workbench();
    benches.push(first);
    while (benches.length < Math.max(1, Number(values.jobs))) benches.push(new Workbench(first));
    const { judged, broken } = await run(benches, teeth);
    const table = teethTable(BUGS, judged);
    if (values["write-docs"]) {
      if (teeth.length < TEETH.length) throw new Error("the table can only be written with all teeth");
      const path = fileURLToPath(new URL("../../docs/teeth.md", import.meta.url));
      writeFileSync(path, withTeeth(readFileSync(path, "utf8"), table));
    }
    const passed = judged.filter(({ result }) => result.isCaught).length;
    const failed = judged.length - passed + broken.length;
    if (values.json !== undefined) {
      const rows = judged.map(({ tooth: { id, bugs, mistake, catcher }, result }) => ({
        id,
        bugs,
        mistake,
        caughtBy: catcherName(catcher),
        ...result,
      }));
      writeFileSync(
        values.json,
        `${JSON.stringify({ passed, failed, teeth: rows, brokenControls: broken }, null, 2)}\n`,
      );
    }
    say(table.split("\n")[0] ?? "");
    say(`${passed} passed, ${failed} failed`);
    return failed === 0 && passed > 0 ? 0 : 1;
  } finally {
    clear();
  }
}

exit(await main());

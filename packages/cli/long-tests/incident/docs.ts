/** Writes packages/cli/docs/incident.md and the pictures in docs/console from the results of the test. */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import type { Question } from "./questions.js";
import type { Incident } from "./scene.js";

const PICTURES = fileURLToPath(new URL("../../../../docs/console/", import.meta.url));
const DOCS = fileURLToPath(new URL("../../docs/", import.meta.url));
/** Larger pictures would make the repository large and the page slow to load. */
const MOST_BYTES = 120_000;

/** A question, and what the command printed. */
export interface Answered {
  readonly question: Question;
  readonly output: string;
}

/** Takes a picture for docs/console. @throws Error  the picture is too large */
export async function takePicture(page: Page, file: string): Promise<void> {
  const picture = await page.screenshot();
  if (picture.length > MOST_BYTES) throw new Error(`${file} has ${picture.length} bytes, more than ${MOST_BYTES}`);
  writeFileSync(`${PICTURES}${file}`, picture);
}

/** Writes packages/cli/docs/incident.md. */
export function writePage(answers: readonly Answered[], incident: Incident): void {
  const mask = masked(incident);
  const sections = answers.map(
    ({ question: { question, words, text, pictures = [] }, output }) => `## ${question}

\`\`\`console
$ holdfast ${words.join(" ").replace("REDLOCK", "--redlock -r redis://a -r redis://b -r redis://c")}
${mask(output).trimEnd()}
\`\`\`

${text}
${pictures.map(({ file, alt }) => `\n![${alt}](../../../docs/console/${file})\n`).join("")}`,
  );
  mkdirSync(DOCS, { recursive: true });
  writeFileSync(`${DOCS}incident.md`, `${INTRODUCTION}\n${sections.join("\n")}`);
}

const INTRODUCTION = `# An incident, question by question

\`npm run incident\` plays this incident on real processes: 20 clients hold 5,000 locks on one Redis, one of them is killed, two wait for
each other, a lock is paused, a Redlock loses one of its three servers, and Redis is stopped and started. The script checks each answer,
and writes this page and its pictures.
`;

/** Replaces tokens, ids and addresses, which differ from run to run, with fixed texts of the same length. */
function masked({ redis }: Incident): (text: string) => string {
  const known = new Map<string, string>();
  const number = (found: string, make: (n: number) => string): string => {
    const name = known.get(found) ?? make(known.size);
    known.set(found, name);
    return name;
  };
  return (text) =>
    text
      .replaceAll(`127.0.0.1:${redis.port}`, "127.0.0.1:6379")
      .replace(/\b\d{16}\b/g, (token) => number(token, (n) => String(1795330164221092 + 7919 * n)))
      .replace(/(?<=owner )[\w-]{16}(?=\/)|(?<= )[\w-]{16}(?=\/\d+\/\d+\/)/g, (id) =>
        number(id, (n) => `client-${String(n).padStart(9, "0")}`),
      );
}

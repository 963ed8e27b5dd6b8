#!/usr/bin/env node
/**
 * What the published command begins with. It prints help and the version by itself, and loads the command for all else. In the
 * repository main.ts is started without it.
 */
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type Answers, answerTo } from "./answers.js";

// Bundled as CommonJS: Node is spared its loader of modules, which takes longer than what is printed.
declare const __dirname: string;

const answer = answerTo(process.argv.slice(2), readAnswers);
if (answer === undefined || !isPrinted(answer)) {
  void import("./code-cache.js").then(({ loadWithCache }) => loadWithCache(join(__dirname, "command.cjs")));
}

function readAnswers(): Answers {
  return JSON.parse(readFileSync(join(__dirname, "answers.json"), "utf8")) as Answers;
}

/** Without the streams of `process`, which take longer to open. What is in the way is left to the command, which waits. */
function isPrinted(text: string): boolean {
  const bytes = Buffer.from(text);
  let at = 0;
  try {
    while (at < bytes.length) at += writeSync(1, bytes, at);
    return true;
  } catch {
    // Half of it cannot be said twice; a pipe takes less than 4 kB as a whole or not at all.
    return at > 0;
  }
}

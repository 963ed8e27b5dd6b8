#!/usr/bin/env node
/**
 * The entry point of the published command. It prints help and the version itself, and loads the full command for
 * everything else. In the repository, main.ts is started directly.
 */
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ProcessStreams } from "../frame/streams.js";
import { type Answers, answerTo } from "./answers.js";
import { loadWithCache } from "./code-cache.js";

// This file is bundled as CommonJS, because starting Node's ES module loader takes longer than printing the text.
declare const __dirname: string;

const answer = answerTo(process.argv.slice(2), readAnswers);
if (answer === undefined || !isPrinted(answer)) {
  loadWithCache(join(__dirname, "command.cjs"));
}

function readAnswers(): Answers {
  return JSON.parse(readFileSync(join(__dirname, "answers.json"), "utf8")) as Answers;
}

/**
 * Writes the text without the streams of `process`, which take longer to open. If the output is blocked, the full
 * command writes the text, because it can wait.
 */
function isPrinted(text: string): boolean {
  const bytes = Buffer.from(text);
  let at = 0;
  try {
    while (at < bytes.length) at += writeSync(1, bytes, at);
  } catch {
    if (at === 0) return false;
    // A pipe that is nearly full accepts only part of the text. Printing again would repeat that part, so write
    // only the rest here, with a stream that can wait.
    new ProcessStreams().stdout.write(bytes.subarray(at));
  }
  return true;
}

#!/usr/bin/env node
/**
 * What the published command begins with. It prints help and the version by itself, and loads the command for all else. In the
 * repository main.ts is started without it.
 */
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ProcessStreams } from "../frame/streams.js";
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
  } catch {
    if (at === 0) return false;
    // A pipe that is nearly full takes a part. It cannot be said twice: the rest waits here.
    new ProcessStreams().stdout.write(bytes.subarray(at));
  }
  return true;
}

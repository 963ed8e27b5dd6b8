#!/usr/bin/env node
import { redact } from "@holdfast/console/text";
/** The `holdfast` command. What it does is in frame/dispatch.ts; here is only what belongs to a process. */
import { dispatch } from "./frame/dispatch.js";
import { EXIT } from "./frame/exit-codes.js";
import { ProcessStreams } from "./frame/streams.js";
import { version } from "./frame/version.js";

const streams = new ProcessStreams();
process.on("uncaughtException", (error) => {
  streams.stderr.write(`holdfast: ${redact(process.argv.includes("-v") ? (error.stack ?? "") : String(error))}\n`);
  process.exit(EXIT.internal);
});
// If nothing is left to wait for before there is an answer, that is a failure of ours.
process.exitCode = EXIT.internal;
void dispatch(process.argv.slice(2), streams, version).then(async (code) => {
  await streams.flush();
  // What is still open (a socket that lingers, a timer of a client) must not hold up whoever waits for the answer.
  process.exit(code);
});

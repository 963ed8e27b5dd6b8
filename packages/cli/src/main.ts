#!/usr/bin/env node
import { plain, redact } from "@holdfast/console/text";
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
/** Once: each connection warns again. */
const warned = new Set<string>();
const warn = (text: string): void => {
  const message = redact(plain(text));
  if (!warned.has(message)) streams.stderr.write(`holdfast: ${message}\n`);
  warned.add(message);
};
// The client library prints its warnings and has no option for them.
console.warn = (text: unknown): void => {
  // Without the right to INFO it cannot ask whether the server has loaded its data. `holdfast doctor` names missing rights.
  if (!String(text).startsWith("Skipping the ready check")) warn(String(text));
};
// Unless warnings are off: without the process id and the advice for programmers that Node adds.
if (process.listenerCount("warning") > 0) {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message, code }: Error & { code?: string }) => {
    if (name === "HoldfastWarning") warn(`${message.replace(/\.$/, "")} (${code}; look with: holdfast doctor)`);
  });
}
// If nothing is left to wait for before there is an answer, that is a failure of ours.
process.exitCode = EXIT.internal;
void dispatch(process.argv.slice(2), streams, version).then(async (code) => {
  await streams.flush();
  // What is still open (a socket that lingers, a timer of a client) must not hold up whoever waits for the answer.
  process.exit(code);
});

#!/usr/bin/env node
import { plain, redact } from "@holdfast/console/text";
/**
 * The entry point of the `holdfast` command. The logic is in frame/dispatch.ts; this file contains only the
 * process-level setup.
 */
import { dispatch } from "./frame/dispatch.js";
import { EXIT } from "./frame/exit-codes.js";
import { ProcessStreams } from "./frame/streams.js";
import { version } from "./frame/version.js";

const streams = new ProcessStreams();
process.on("uncaughtException", (error) => {
  streams.stderr.write(`holdfast: ${redact(process.argv.includes("-v") ? (error.stack ?? "") : String(error))}\n`);
  process.exit(EXIT.internal);
});
/** Print each warning once, because every connection repeats it. */
const warned = new Set<string>();
const warn = (text: string): void => {
  const message = redact(plain(text));
  if (!warned.has(message)) streams.stderr.write(`holdfast: ${message}\n`);
  warned.add(message);
};
// The client library prints its warnings with console.warn and has no option to change that.
console.warn = (text: unknown): void => {
  // Without permission for INFO, the client library cannot check whether the server has loaded its data. `holdfast
  // doctor` names missing permissions.
  if (!String(text).startsWith("Skipping the ready check")) warn(String(text));
};
// Unless warnings are turned off, print only those of Holdfast, without the process id and the hints that Node adds.
if (process.listenerCount("warning") > 0) {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message, code }: Error & { code?: string }) => {
    if (name === "HoldfastWarning") warn(`${message.replace(/\.$/, "")} (${code}; run holdfast doctor)`);
  });
}
// If the event loop runs empty before there is an exit code, that is an internal error.
process.exitCode = EXIT.internal;
void dispatch(process.argv.slice(2), streams, version).then(async (code) => {
  await streams.flush();
  // Open handles, such as a lingering socket or a client's timer, must not delay the exit.
  process.exit(code);
});

/** Tests what a terminal does to a run: a key, a terminal that goes away, a question that the command asks. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { until } from "../../holdfast/src/testing/delays.js";
import { isRunning, MAIN, newFolder, numberIn, textIn } from "../tests/support/command.js";

let server: RedisServer;
let socket: string;

beforeAll(async () => {
  server = await startRedis();
  socket = join(await newFolder(), "tmux");
});
afterAll(async () => {
  try {
    tmux("kill-server");
  } catch {
    // The tmux server has already ended with its last session.
  }
  await server.stop();
});

function tmux(...words: string[]): string {
  return execFileSync("tmux", ["-S", socket, "-f", "/dev/null", ...words], { encoding: "utf8" });
}

/** Starts a session that runs a shell command and records its exit code. */
function session(name: string, folder: string, words: string): void {
  const line = `HOLDFAST_REDIS=${server.url} '${process.execPath}' '${MAIN}' ${words}; echo $? > ${folder}/code; sleep 60`;
  tmux("new-session", "-d", "-s", name, "-x", "100", "-y", "30", line);
}

it("Ctrl-C reaches the command once, and holdfast exits with the command's code", async () => {
  const folder = await newFolder();
  session(
    "key",
    folder,
    `run key -c 'trap "echo int >> ${folder}/int; exit 9" INT; echo $$ > ${folder}/pid; while :; do sleep 0.05; done'`,
  );
  await numberIn(join(folder, "pid"));
  tmux("send-keys", "-t", "key", "C-c");
  expect(await numberIn(join(folder, "code"))).toBe(9);
  expect(textIn(join(folder, "int"))).toBe("int\n");
});

it("a terminal that closes ends the command with HUP", async () => {
  const folder = await newFolder();
  session(
    "gone",
    folder,
    `run gone -c 'trap "echo hup > ${folder}/hup; exit 0" HUP; echo $$ > ${folder}/pid; while :; do sleep 0.05; done'`,
  );
  const pid = await numberIn(join(folder, "pid"));
  tmux("kill-session", "-t", "gone");
  await until(() => textIn(join(folder, "hup")) === "hup\n" && !isRunning(pid), "the end by HUP");
});

it("with --foreground, the command can read from the terminal", async () => {
  const folder = await newFolder();
  session("ask", folder, `run ask --foreground -c 'read answer < /dev/tty; echo $answer > ${folder}/answer'`);
  await until(() => {
    tmux("send-keys", "-t", "ask", "yes", "Enter");
    return textIn(join(folder, "answer"))?.includes("yes") === true; // the file exists before its text is written
  }, "the answer");
  expect(await numberIn(join(folder, "code"))).toBe(0);
});

it("a run that waits on a terminal names the holder", async () => {
  const folder = await newFolder();
  session("holder", folder, `run wanted -m 'release 4.2' -c 'echo $$ > ${folder}/pid; sleep 30'`);
  await numberIn(join(folder, "pid"));
  session("waiter", folder, "run wanted -- true");
  await until(
    () => /waiting: wanted is held by .*"release 4\.2"/s.test(tmux("capture-pane", "-p", "-J", "-t", "waiter")),
    "the line",
  );
});

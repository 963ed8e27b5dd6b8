/**
 * Watches the commands that reach a server (MONITOR). It uses a plain socket, because client libraries that support
 * MONITOR may mistake its output for the replies to another connection's handshake.
 */
import { once } from "node:events";
import { connect } from "node:net";

/** Receives each command in lower case, and whether a script called it. */
export type OnCommand = (command: string, isNested: boolean) => void;

const LINE = /^\+[\d.]+ \[\d+ ([^\]]+)\] "([^"]*)"/;

/** Starts watching. Call the returned function to stop. */
export async function monitor(port: number, onCommand: OnCommand): Promise<() => void> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.setEncoding("utf8");
  let rest = "";
  const started = once(socket, "data");
  socket.on("data", (text: string) => {
    const lines = (rest + text).split("\r\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [, source = "", command = ""] = LINE.exec(line) ?? [];
      if (command !== "") onCommand(command.toLowerCase(), source === "lua");
    }
  });
  socket.on("error", () => {}); // the socket ends with the server, or when it is destroyed
  socket.write("MONITOR\r\n");
  await started;
  return () => socket.destroy();
}

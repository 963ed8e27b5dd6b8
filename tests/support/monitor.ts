/** Records everything that clients send to a Redis server, in the order in which MONITOR shows it. */
import { once } from "node:events";
import { createConnection } from "node:net";
import type { RedisServer } from "./redis-server.js";
import { encodeCommand, RespParser } from "./resp.js";

/** A running MONITOR. */
export interface Monitor {
  /**
   * The requests since the last call, or since the start, each as a list of words with the command in lower case.
   * Commands that scripts call are omitted, or follow their EVALSHA with `lua` as the first word.
   */
  sent(): Promise<string[][]>;
  stop(): void;
}

/** Monitors `server` from the moment it resolves. @param insideScripts  whether to record commands that scripts call */
export async function startMonitor(server: RedisServer, insideScripts = false): Promise<Monitor> {
  const socket = createConnection({ port: server.port, host: "127.0.0.1" });
  const parser = new RespParser();
  let seen: string[][] = [];
  let wake = (): void => {};
  socket.on("data", (bytes) => {
    for (const { value } of parser.push(bytes)) {
      const [, source = "", words = ""] = /^[\d.]+ \[\d+ ([^\]]+)\] (.*)$/.exec(String(value)) ?? [];
      const isInside = source === "lua";
      if (source === "" || (isInside && !insideScripts)) continue;
      const [command = "", ...rest] = [...words.matchAll(/"((?:\\.|[^"\\])*)"/g)].map(([, word = ""]) => word);
      seen.push([...(isInside ? ["lua"] : []), command.toLowerCase(), ...rest]);
    }
    wake();
  });
  socket.write(encodeCommand(["MONITOR"]));
  await once(socket, "data");
  let marks = 0;

  return {
    async sent() {
      // The server runs this mark after every request that was sent before it.
      marks += 1;
      const mark = `mark ${marks}`;
      await server.command("ECHO", mark);
      for (;;) {
        const at = seen.findIndex(([command, word]) => command === "echo" && word === mark);
        if (at >= 0) {
          const before = seen.slice(0, at);
          seen = seen.slice(at + 1);
          return before;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    stop: () => void socket.destroy(),
  };
}

/** A minimal EventSource for tests. */
import { once } from "node:events";
import { type IncomingHttpHeaders, request } from "node:http";

/** One event. */
export interface ReadEvent {
  readonly id: string;
  readonly name: string;
  // Typed loosely; each test checks the contents.
  readonly data: ReturnType<typeof JSON.parse>;
}

/** A stream that is read in the background. */
export interface EventReader {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly events: readonly ReadEvent[];
  /** The raw text, including comments. */
  raw(): string;
  /** The next unread event of that name for which `fits` returns true; events before it are dropped. */
  next(name: string, fits?: (data: ReadEvent["data"]) => boolean): Promise<ReadEvent>;
  /** Resolves when the server ends the stream. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Opens a stream. */
export async function readEvents(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<EventReader> {
  const sent = request({
    host: "127.0.0.1",
    port,
    path,
    headers: { accept: "text/event-stream", ...headers },
    agent: false,
  });
  sent.on("error", () => {});
  sent.end();
  const [res] = await once(sent, "response");
  const events: ReadEvent[] = [];
  let text = "";
  let rest = "";
  let handedOut = 0;
  let wake = (): void => {};
  res.setEncoding("utf8");
  res.on("data", (chunk: string) => {
    text += chunk;
    rest += chunk;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => split(line)));
      const data = fields.get("data");
      if (data === undefined) continue;
      events.push({ id: fields.get("id") ?? "", name: fields.get("event") ?? "message", data: JSON.parse(data) });
    }
    wake();
  });
  const ended = new Promise<void>((resolve) => {
    res.on("close", () => {
      resolve();
      wake();
    });
  });
  return {
    status: res.statusCode,
    headers: res.headers,
    events,
    raw: () => text,
    ended,
    async next(name, fits = () => true) {
      for (;;) {
        while (handedOut < events.length) {
          const event = events[handedOut] as ReadEvent;
          handedOut += 1;
          if (event.name === name && fits(event.data)) return event;
        }
        if (res.destroyed) throw new Error(`the stream ended without ${name}: ${text}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    close: () => sent.destroy(),
  };
}

function split(line: string): [string, string] {
  const at = line.indexOf(": ");
  return [line.slice(0, at), line.slice(at + 2)];
}

/** A feed of numbered items. A request returns the ten items after a given one. */
import { once } from "node:events";
import { createServer } from "node:http";

const PAGE = 10;

/** The feed and a record of its requests. */
export interface Feed {
  readonly url: string;
  /** The tick of each request, in ms of the server's clock. */
  readonly ticks: readonly number[];
  close(): void;
}

/** Serves the feed on a free port of this machine. */
export async function serveFeed(): Promise<Feed> {
  const ticks: number[] = [];
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "/", "http://feed");
    const after = Number(searchParams.get("after"));
    ticks.push(Date.parse(searchParams.get("tick") ?? ""));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(Array.from({ length: PAGE }, (_, at) => after + 1 + at)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    ticks,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

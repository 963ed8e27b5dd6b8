/**
 * The connection between clients and one server: a TCP proxy in this process that injects single faults.
 *
 * It parses commands and replies, so it can lose the reply to one command and nothing else. Each fault resolves when
 * it has struck, and `counts` has the number of times, because a run whose fault did not happen shows nothing.
 */

import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import type { LateRequest } from "../../history/records.js";
import { Random } from "../../simulation/random.js";
import type { FaultProxy, Matches } from "../stage.js";
import { type Exchange, ScriptNames } from "./exchange.js";
import { type ArmedFault, type Counts, Link, type Shared } from "./link.js";
import { monotonicMs } from "./monotonic.js";
import { RespParser } from "./resp.js";

/** The options of a proxy. */
export interface ProxyOptions {
  readonly targetPort: number;
  /** Decides which messages are dropped. */
  readonly random?: Random;
  /** Called with each exchange when its request arrives; the exchange is completed later. */
  readonly onExchange?: (exchange: Exchange) => void;
  /** The address to listen on; for clients in another network namespace. */
  readonly host?: string;
}

/** Starts a proxy on a free port of the loopback interface by default. */
export async function startProxy(options: ProxyOptions): Promise<FaultProxy> {
  const { random = new Random(1), onExchange = () => {}, host = "127.0.0.1" } = options;
  const counts: Counts = {
    connections: 0,
    requests: 0,
    forwarded: 0,
    delivered: 0,
    lostRequests: 0,
    lostReplies: 0,
    duplicated: 0,
    late: 0,
    lateArrivals: 0,
    errorsAnswered: 0,
    messages: 0,
    droppedMessages: 0,
    silenced: 0,
    cuts: 0,
    scriptsUnknown: 0,
  };
  let last: Exchange | undefined;
  const late: LateRequest[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const shared: Shared = {
    targetPort: options.targetPort,
    counts,
    faults: new Set(),
    links: new Set(),
    requests: { isStalled: false, drawMs: undefined },
    replies: { isStalled: false, drawMs: undefined },
    scripts: new ScriptNames(),
    random,
    dropShare: 0,
    note(exchange) {
      if (exchange.sort === "message") last = exchange;
      onExchange(exchange);
    },
    deliverLate(bytes, exchange, fault) {
      const timer = setTimeout(() => {
        timers.delete(timer);
        const atMs = monotonicMs();
        exchange.forwardedMs = atMs;
        void deliver(shared.targetPort, bytes, exchange).then((hasArrived) => {
          if (hasArrived) {
            counts.lateArrivals += 1;
            late.push({ atMs, words: exchange.words });
          }
          fault.strike();
        });
      }, fault.delayMs);
      timers.add(timer);
    },
  };
  const listener = createServer((client) => new Link(client, shared)).listen(0, host);
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");

  function arm(fault: Omit<ArmedFault, "strike">): Promise<void> {
    return new Promise((strike) => shared.faults.add({ ...fault, strike }));
  }
  function cutAll(): void {
    for (const link of shared.links) link.cut();
  }
  return {
    port: address.port,
    counts,
    loseRequest: (matches: Matches) => arm({ sort: "loseRequest", matches }),
    loseReply: (matches: Matches) => arm({ sort: "loseReply", matches }),
    duplicate: (matches: Matches, answer = "second") => arm({ sort: "duplicate", matches, answer }),
    late: (matches: Matches, delayMs: number) => arm({ sort: "late", matches, delayMs }),
    answerError: (matches: Matches, text: string) => arm({ sort: "answerError", matches, text }),
    meet: (matches: Matches) => arm({ sort: "meet", matches }),
    disarm: () => shared.faults.clear(),
    delay(drawMs) {
      shared.requests.drawMs = drawMs;
      shared.replies.drawMs = drawMs;
    },
    stall(direction) {
      if (direction !== "replies") shared.requests.isStalled = true;
      if (direction !== "requests") shared.replies.isStalled = true;
    },
    resume() {
      shared.requests.isStalled = false;
      shared.replies.isStalled = false;
      for (const link of shared.links) link.drain();
    },
    takeLate: () => late.splice(0),
    lastMessage() {
      const [channel, text] = last?.words ?? [];
      return channel === undefined || text === undefined ? undefined : { channel, text };
    },
    dropMessages(share) {
      shared.dropShare = share;
    },
    silence(which, { closesServerSide = false } = {}) {
      const links = [...shared.links].filter(({ isSubscriber }) => which === "all" || isSubscriber);
      for (const link of links) link.silence(closesServerSide);
      counts.silenced += links.length;
      return links.length;
    },
    lead(targetPort) {
      shared.targetPort = targetPort;
      cutAll();
    },
    cutAll,
    async close() {
      for (const timer of timers) clearTimeout(timer);
      if (!listener.listening) return;
      const closed = once(listener, "close");
      listener.close();
      cutAll();
      await closed;
    },
  };
}

/** Sends a request on a new connection. @returns whether the server replied */
function deliver(port: number, bytes: Buffer, exchange: Exchange): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    const parser = new RespParser();
    socket.on("data", (answer) => {
      const [frame] = parser.push(answer);
      if (frame === undefined) return;
      exchange.repliedMs = monotonicMs();
      exchange.reply = frame.value;
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(false));
    socket.write(bytes);
  });
}

/**
 * One client connection through the proxy, and the connection to the server behind it.
 *
 * Replies arrive in the order of requests, so the list of pending requests tells which request a reply belongs to.
 * Messages and subscription confirmations arrive out of order, and are recognized by their form.
 */

import { createConnection, type Socket } from "node:net";
import type { Random } from "../../simulation/random.js";
import type { Matches } from "../stage.js";
import { type Exchange, isTelling, type ScriptNames } from "./exchange.js";
import { monotonicMs } from "./monotonic.js";
import { Pipe, type Weather } from "./pipe.js";
import { type Frame, RespParser } from "./resp.js";

/** The faults of a single request. */
export type FaultSort = "loseRequest" | "loseReply" | "duplicate" | "late" | "answerError" | "meet";

/** A fault that waits for its request. */
export interface ArmedFault {
  readonly sort: FaultSort;
  readonly matches: Matches;
  /** For `duplicate`: which of the two replies is forwarded. */
  readonly answer?: "first" | "second";
  /** For `late`. */
  readonly delayMs?: number;
  /** For `answerError`. */
  readonly text?: string;
  strike(): void;
}

/** How many times each event has happened. */
export type Counts = Record<
  | "connections"
  | "requests"
  | "forwarded"
  | "delivered"
  | "lostRequests"
  | "lostReplies"
  | "duplicated"
  | "late"
  | "lateArrivals"
  | "errorsAnswered"
  | "messages"
  | "droppedMessages"
  | "silenced"
  | "cuts"
  | "scriptsUnknown",
  number
>;

/** State shared by the connections of a proxy. */
export interface Shared {
  /** The target of new connections. */
  targetPort: number;
  readonly counts: Counts;
  readonly faults: Set<ArmedFault>;
  readonly links: Set<Link>;
  readonly requests: Weather;
  readonly replies: Weather;
  readonly scripts: ScriptNames;
  readonly random: Random;
  dropShare: number;
  note(exchange: Exchange): void;
  /** Delivers a request on a new connection. */
  deliverLate(bytes: Buffer, exchange: Exchange, fault: ArmedFault): void;
}

/** A request in transit to the server. */
interface Sent {
  readonly frame: Frame;
  readonly exchange: Exchange;
  readonly fault: ArmedFault | undefined;
}

/** The request for the server's next reply, and what to do with the reply. */
interface Awaited {
  readonly exchange: Exchange;
  readonly fate: "deliver" | "swallow" | "cut";
  /** For a request that is not forwarded: the forged reply. */
  readonly canned?: string;
  readonly strike?: () => void;
}

const SUBSCRIBES = /^[ps]?(?:un)?subscribe$/i;
const OUT_OF_TURN = /^[ps]?(?:message|(?:un)?subscribe)$/;

/** One proxied connection. */
export class Link {
  readonly #number: number;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #shared: Shared;
  readonly #requests: Pipe<Sent>;
  readonly #replies: Pipe<{ readonly bytes: Buffer | string; readonly exchange?: Exchange }>;
  readonly #awaited: Awaited[] = [];
  #isSubscriber = false;
  #isSilent = false;
  #isOver = false;

  constructor(client: Socket, shared: Shared) {
    this.#client = client;
    this.#shared = shared;
    this.#server = createConnection({ port: shared.targetPort, host: "127.0.0.1" });
    shared.links.add(this);
    shared.counts.connections += 1;
    this.#number = shared.counts.connections;
    this.#requests = new Pipe(shared.requests, (sent) => this.#forward(sent));
    this.#replies = new Pipe(shared.replies, ({ bytes, exchange }) => {
      client.write(bytes);
      shared.counts.delivered += 1;
      if (exchange !== undefined) exchange.deliveredMs = monotonicMs();
    });
    const requestParser = new RespParser();
    const replyParser = new RespParser();
    for (const socket of [client, this.#server]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
    }
    client.on("data", (bytes: Buffer) => {
      for (const frame of requestParser.push(bytes)) this.#receive(frame);
    });
    this.#server.on("data", (bytes: Buffer) => {
      for (const frame of replyParser.push(bytes)) this.#answer(frame);
    });
    // Data that was sent before a connection ended still arrives, as on a real network.
    client.on("close", () => this.#isSilent || this.#requests.whenEmpty(() => this.#end()));
    this.#server.on("close", () => this.#isSilent || this.#replies.whenEmpty(() => this.#end()));
  }

  /** Whether it has requested a subscription. */
  get isSubscriber(): boolean {
    return this.#isSubscriber;
  }

  /**
   * Drops everything from now on, in both directions, including the end of the other side: each side considers the
   * other connected until `cut`. With `closesServerSide`, the server sees the connection end, but the client does
   * not.
   */
  silence(closesServerSide: boolean): void {
    if (this.#isOver) return;
    this.#isSilent = true;
    this.#requests.clear();
    this.#replies.clear();
    if (closesServerSide) this.#server.destroy();
  }

  /** Continues after a stall. */
  drain(): void {
    this.#requests.drain();
    this.#replies.drain();
  }

  /** Closes both connections; data in transit is lost. */
  cut(): void {
    if (this.#isOver) return;
    this.#shared.counts.cuts += 1;
    this.#requests.clear();
    this.#replies.clear();
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#shared.links.delete(this);
    // Pending writes are still sent.
    this.#client.destroySoon();
    this.#server.destroySoon();
  }

  #receive(frame: Frame): void {
    if (this.#isOver || this.#isSilent) return;
    const { counts, scripts } = this.#shared;
    counts.requests += 1;
    const words = scripts.named(Array.isArray(frame.value) ? frame.value.map(String) : [String(frame.value)]);
    const exchange: Exchange = { sort: "request", connection: this.#number, words, receivedMs: monotonicMs() };
    if (isTelling(words)) this.#shared.note(exchange);
    const fault = this.#faultFor(words);
    if (fault?.sort === "loseRequest") {
      counts.lostRequests += 1;
      this.cut();
      fault.strike();
    } else if (fault?.sort === "late") {
      counts.late += 1;
      this.#shared.deliverLate(frame.bytes, exchange, fault);
      this.cut();
    } else {
      if (fault?.sort === "meet") fault.strike();
      this.#requests.put({ frame, exchange, fault });
    }
  }

  #faultFor(words: readonly string[]): ArmedFault | undefined {
    for (const fault of this.#shared.faults) {
      if (!fault.matches(words)) continue;
      this.#shared.faults.delete(fault);
      return fault;
    }
    return undefined;
  }

  #forward({ frame, exchange, fault }: Sent): void {
    if (this.#isOver || this.#isSilent) return;
    const { counts } = this.#shared;
    if (fault?.sort === "answerError") {
      counts.errorsAnswered += 1;
      this.#await({ exchange, fate: "deliver", canned: `-${fault.text ?? "ERR"}\r\n` });
      fault.strike();
      return;
    }
    if (fault?.sort === "duplicate") {
      counts.duplicated += 1;
      this.#await({ exchange, fate: fault.answer === "first" ? "deliver" : "swallow" });
      this.#server.write(frame.bytes);
      fault.strike();
    }
    // Subscriptions are confirmed out of order, once for each channel.
    if (SUBSCRIBES.test(exchange.words[0] ?? "")) this.#isSubscriber = true;
    else if (fault?.sort === "loseReply") this.#await({ exchange, fate: "cut", strike: fault.strike });
    else this.#await({ exchange, fate: fault?.answer === "first" ? "swallow" : "deliver" });
    exchange.forwardedMs = monotonicMs();
    counts.forwarded += 1;
    this.#server.write(frame.bytes);
  }

  #await(awaited: Awaited): void {
    this.#awaited.push(awaited);
    if (awaited.canned !== undefined) this.#flushCanned();
  }

  /** Sends forged replies when all earlier requests have been answered. */
  #flushCanned(): void {
    for (let [next] = this.#awaited; next?.canned !== undefined; [next] = this.#awaited) {
      this.#awaited.shift();
      next.exchange.repliedMs = monotonicMs();
      next.exchange.reply = new Error(next.canned.slice(1).trim());
      this.#replies.put({ bytes: next.canned, exchange: next.exchange });
    }
  }

  #answer(frame: Frame): void {
    if (this.#isOver || this.#isSilent) return;
    const first = Array.isArray(frame.value) ? String(frame.value[0]) : "";
    if (frame.type === ">" || (this.#isSubscriber && OUT_OF_TURN.test(first))) {
      this.#tell(frame, first);
      return;
    }
    const awaited = this.#awaited.shift();
    if (awaited === undefined) {
      this.#replies.put({ bytes: frame.bytes });
      return;
    }
    const { exchange, fate, strike } = awaited;
    // The reply to a copy has no receiver.
    if (fate !== "swallow") {
      exchange.repliedMs = monotonicMs();
      exchange.reply = frame.value;
    }
    if (frame.value instanceof Error && frame.value.message.startsWith("NOSCRIPT"))
      this.#shared.counts.scriptsUnknown += 1;
    if (fate === "deliver") this.#replies.put({ bytes: frame.bytes, exchange });
    if (fate === "cut") {
      this.#shared.counts.lostReplies += 1;
      this.cut();
      strike?.();
    }
    this.#flushCanned();
  }

  #tell(frame: Frame, sort: string): void {
    if (!sort.endsWith("message") || !Array.isArray(frame.value)) {
      this.#replies.put({ bytes: frame.bytes });
      return;
    }
    const { counts, dropShare, random } = this.#shared;
    const words = frame.value.slice(1).map(String);
    const exchange: Exchange = { sort: "message", connection: this.#number, words, receivedMs: monotonicMs() };
    this.#shared.note(exchange);
    counts.messages += 1;
    if (dropShare > 0 && random.chance(dropShare)) counts.droppedMessages += 1;
    else this.#replies.put({ bytes: frame.bytes, exchange });
  }
}

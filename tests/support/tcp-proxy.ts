/**
 * A TCP proxy before a Redis server, in this process, that makes one chosen thing go wrong at one exact place.
 *
 * It knows where a command and a reply begin and end, so it can lose the reply to one command and nothing else.
 * Each fault answers with a promise that resolves when it has struck, and `counts` says how often: a test
 * whose fault did not happen shows nothing.
 */

import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { type Frame, RespParser } from "./resp.js";

/** Which request a fault is for: its words joined by spaces, or a function of them. */
export type Matches = RegExp | ((words: readonly string[]) => boolean);

export interface FaultCounts {
  connections: number;
  requests: number;
  /** Replies that the server gave and the client did not get. */
  lostReplies: number;
  /** Requests that the client sent and the server did not get. */
  lostRequests: number;
  /** Requests that the server got twice. */
  duplicated: number;
  /** Requests, or replies, held back, released since or not. */
  held: number;
  /** Pub/sub messages passed on. */
  messages: number;
  /** Pub/sub messages not passed on. */
  droppedMessages: number;
  /** Connections cut, for whatever reason. */
  cuts: number;
}

export interface TcpProxy {
  readonly port: number;
  readonly counts: Readonly<FaultCounts>;
  /** The next matching request reaches the server; when its reply is here, the connection is cut instead. */
  cutBeforeReply(matches: Matches): Promise<void>;
  /** The next matching request does not reach the server; the connection is cut. */
  cutBeforeRequest(matches: Matches): Promise<void>;
  /** The next matching request reaches the server twice; the client gets the second reply. */
  duplicate(matches: Matches): Promise<void>;
  /** The next matching request, and what follows on its connection, waits until `release`. */
  hold(matches: Matches): { readonly reached: Promise<void>; release(): void };
  /** The next matching request reaches the server; its reply, and what follows on its connection, waits until `release`. */
  holdReply(matches: Matches): { readonly reached: Promise<void>; release(): void };
  /** Passes nothing on, in either direction and on new connections too, until `resume`. */
  stall(): void;
  resume(): void;
  /** Whether pub/sub messages are swallowed from now on. */
  dropMessages(isOn: boolean): void;
  /**
   * Each connection that has subscribed passes nothing on any more, and neither end is told; new connections work.
   *
   * @param end  `silent` if the server keeps its end too; `server` if its end is closed, so that it counts no subscriber
   * @returns how many connections there were
   */
  blackHole(end: "silent" | "server"): number;
  /** Cuts every connection there is now; new ones work. */
  cutAll(): void;
  /** Whether new connections are closed as soon as they are made. */
  refuse(isOn: boolean): void;
  /** Cuts all connections and stops listening. */
  close(): Promise<void>;
}

type FaultKind = "cutBeforeReply" | "cutBeforeRequest" | "duplicate" | "hold" | "holdReply";

interface Fault {
  readonly kind: FaultKind;
  readonly matches: Matches;
  readonly released: Promise<void>;
  strike(): void;
}

interface State {
  readonly targetPort: number;
  readonly counts: FaultCounts;
  readonly faults: Set<Fault>;
  readonly links: Set<Link>;
  isStalled: boolean;
  isDropping: boolean;
  isRefusing: boolean;
}

/** Starts a proxy on a free loopback port before the server on `targetPort`. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const counts: FaultCounts = {
    connections: 0,
    requests: 0,
    lostReplies: 0,
    lostRequests: 0,
    duplicated: 0,
    held: 0,
    messages: 0,
    droppedMessages: 0,
    cuts: 0,
  };
  const state: State = {
    targetPort,
    counts,
    faults: new Set(),
    links: new Set(),
    isStalled: false,
    isDropping: false,
    isRefusing: false,
  };
  const listener = createServer((client) => {
    client.on("error", () => {});
    if (state.isRefusing) client.destroy();
    else new Link(client, state);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");

  function arm(kind: FaultKind, matches: Matches, released: Promise<void> = Promise.resolve()): Promise<void> {
    return new Promise((strike) => state.faults.add({ kind, matches, released, strike }));
  }
  function armHeld(kind: FaultKind, matches: Matches): { readonly reached: Promise<void>; release(): void } {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    return { reached: arm(kind, matches, released), release };
  }
  function cutAll(): void {
    for (const link of state.links) link.cut();
  }
  return {
    port: address.port,
    counts,
    cutBeforeReply: (matches) => arm("cutBeforeReply", matches),
    cutBeforeRequest: (matches) => arm("cutBeforeRequest", matches),
    duplicate: (matches) => arm("duplicate", matches),
    hold: (matches) => armHeld("hold", matches),
    holdReply: (matches) => armHeld("holdReply", matches),
    stall() {
      state.isStalled = true;
      for (const link of state.links) link.pause();
    },
    resume() {
      state.isStalled = false;
      for (const link of state.links) link.resume();
    },
    dropMessages(isOn) {
      state.isDropping = isOn;
    },
    blackHole(end) {
      const subscribers = [...state.links].filter((link) => link.isSubscriber);
      for (const link of subscribers) link.blackHole(end);
      return subscribers.length;
    },
    cutAll,
    refuse(isOn) {
      state.isRefusing = isOn;
    },
    async close() {
      if (!listener.listening) return;
      const closed = once(listener, "close");
      listener.close();
      cutAll();
      await closed;
    },
  };
}

/** What to do with the reply to one request. */
type Fate = "deliver" | "swallow" | "cut" | "withhold";

/** One connection of a client, and the one to the server behind it. */
class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #state: State;
  readonly #requests = new RespParser();
  readonly #replies = new RespParser();
  readonly #fates: Fate[] = [];
  #backlog: Frame[] = [];
  #isHeld = false;
  isSubscriber = false;
  #isDark = false;
  #isCut = false;
  #struck: Fault | undefined;
  /** Replies that wait for the release of a fault. */
  #withheld: Frame[] | undefined;

  constructor(client: Socket, state: State) {
    this.#client = client;
    this.#state = state;
    this.#server = createConnection({ port: state.targetPort, host: "127.0.0.1" });
    state.links.add(this);
    state.counts.connections += 1;
    for (const socket of [client, this.#server]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      // Of a black hole neither end hears that the other one is gone.
      socket.on("close", () => {
        if (!this.#isDark || socket === client) this.#end();
      });
    }
    client.on("data", (bytes: Buffer) => {
      if (this.#isDark) return;
      this.#backlog.push(...this.#requests.push(bytes));
      this.#forward();
    });
    this.#server.on("data", (bytes: Buffer) => {
      for (const frame of this.#replies.push(bytes)) this.#answer(frame);
    });
    if (state.isStalled) this.pause();
  }

  pause(): void {
    this.#client.pause();
    this.#server.pause();
  }

  resume(): void {
    this.#client.resume();
    this.#server.resume();
  }

  blackHole(end: "silent" | "server"): void {
    this.#isDark = true;
    if (end === "server") this.#server.destroy();
  }

  cut(): void {
    if (this.#isCut) return;
    this.#state.counts.cuts += 1;
    this.#end();
  }

  #end(): void {
    this.#isCut = true;
    this.#state.links.delete(this);
    this.#client.destroy();
    this.#server.destroy();
  }

  #forward(): void {
    while (!this.#isHeld && !this.#isCut) {
      const frame = this.#backlog.shift();
      if (frame === undefined) return;
      this.#state.counts.requests += 1;
      this.#send(frame);
    }
  }

  #send(frame: Frame): void {
    const words = Array.isArray(frame.value) ? frame.value.map(String) : [String(frame.value)];
    const fault = this.#faultFor(words);
    const { counts } = this.#state;
    switch (fault?.kind) {
      case "cutBeforeRequest":
        counts.lostRequests += 1;
        this.cut();
        fault.strike();
        return;
      case "cutBeforeReply":
        this.#struck = fault;
        this.#pass(frame, words, "cut");
        return;
      case "holdReply":
        this.#struck = fault;
        this.#pass(frame, words, "withhold");
        return;
      case "duplicate":
        counts.duplicated += 1;
        this.#pass(frame, words, "swallow");
        fault.strike();
        break;
      case "hold":
        counts.held += 1;
        this.#isHeld = true;
        fault.strike();
        void fault.released.then(() => {
          this.#isHeld = false;
          if (this.#isCut) return;
          this.#pass(frame, words, "deliver");
          this.#forward();
        });
        return;
    }
    this.#pass(frame, words, "deliver");
  }

  #faultFor(words: readonly string[]): Fault | undefined {
    for (const fault of this.#state.faults) {
      const { matches } = fault;
      if (typeof matches === "function" ? !matches(words) : !matches.test(words.join(" "))) continue;
      this.#state.faults.delete(fault);
      return fault;
    }
    return undefined;
  }

  #pass(frame: Frame, words: readonly string[], fate: Fate): void {
    // Subscriptions are confirmed out of turn, once for each channel.
    if (/^[ps]?(?:un)?subscribe$/i.test(words[0] ?? "")) this.isSubscriber = true;
    else this.#fates.push(fate);
    this.#server.write(frame.bytes);
  }

  #answer(frame: Frame): void {
    if (this.#isCut || this.#isDark) return;
    if (this.#withheld !== undefined) {
      this.#withheld.push(frame);
      return;
    }
    const sort = Array.isArray(frame.value) ? String(frame.value[0]) : "";
    if (frame.type === ">" || (this.isSubscriber && /^[ps]?(?:message|(?:un)?subscribe)$/.test(sort))) {
      const isMessage = sort.endsWith("message");
      if (isMessage) this.#state.counts[this.#state.isDropping ? "droppedMessages" : "messages"] += 1;
      if (!isMessage || !this.#state.isDropping) this.#client.write(frame.bytes);
      return;
    }
    const fate = this.#fates.shift() ?? "deliver";
    if (fate === "deliver") {
      this.#client.write(frame.bytes);
    } else if (fate === "withhold") {
      this.#state.counts.held += 1;
      // By its own fate it is to be delivered when it comes again.
      this.#fates.unshift("deliver");
      this.#withheld = [frame];
      this.#struck?.strike();
      void this.#struck?.released.then(() => {
        const frames = this.#withheld ?? [];
        this.#withheld = undefined;
        for (const each of frames) this.#answer(each);
      });
    } else if (fate === "cut") {
      this.#state.counts.lostReplies += 1;
      this.cut();
      this.#struck?.strike();
    }
  }
}

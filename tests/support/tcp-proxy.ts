/**
 * An in-process TCP proxy in front of a Redis server that injects a fault at an exact point.
 *
 * It parses commands and replies, so it can lose the reply to one command and nothing else. Each fault returns a
 * promise that resolves when the fault has happened, and `counts` shows how often. A test must check one of them,
 * because without the fault it proves nothing.
 */

import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { type Frame, RespParser } from "./resp.js";

/** Selects the request of a fault: a pattern for its words joined by spaces, or a function of its words. */
export type Matches = RegExp | ((words: readonly string[]) => boolean);

export interface FaultCounts {
  connections: number;
  requests: number;
  /** Replies that the server sent and the client did not receive. */
  lostReplies: number;
  /** Requests that the client sent and the server did not receive. */
  lostRequests: number;
  /** Requests that the server received twice. */
  duplicated: number;
  /** Requests and replies that were held back, including those released since. */
  held: number;
  /** Pub/sub messages forwarded. */
  messages: number;
  /** Pub/sub messages dropped. */
  droppedMessages: number;
  /** Connections cut, for any reason. */
  cuts: number;
}

export interface TcpProxy {
  readonly port: number;
  readonly counts: Readonly<FaultCounts>;
  /** The next matching request reaches the server. When the reply arrives, the proxy cuts the connection instead. */
  cutBeforeReply(matches: Matches): Promise<void>;
  /** The next matching request does not reach the server. The proxy cuts the connection. */
  cutBeforeRequest(matches: Matches): Promise<void>;
  /** The next matching request reaches the server twice. The client gets the second reply. */
  duplicate(matches: Matches): Promise<void>;
  /** The next matching request and later ones on its connection wait until `release`. */
  hold(matches: Matches): { readonly reached: Promise<void>; release(): void };
  /** The next matching request reaches the server. Its reply and later ones on its connection wait until `release`. */
  holdReply(matches: Matches): { readonly reached: Promise<void>; release(): void };
  /** Forwards nothing until `resume`, in both directions and also on new connections. */
  stall(): void;
  resume(): void;
  /** Sets whether pub/sub messages are dropped. */
  dropMessages(isOn: boolean): void;
  /**
   * Stops forwarding on each connection that has subscribed, without notifying the client. New connections work.
   *
   * @param end  `silent` leaves the server's end open. `server` closes it, so the server counts no subscriber.
   * @returns the number of connections affected
   */
  blackHole(end: "silent" | "server"): number;
  /** Cuts all current connections. New ones work. */
  cutAll(): void;
  /** Sets whether new connections are closed immediately. */
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

/** Starts a proxy on a free loopback port in front of the server on `targetPort`. */
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

/** One connection of a client and its connection to the server. */
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
      // In a black hole, the client does not learn that the server's end has closed.
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
    // A subscription gets one confirmation per channel, outside the order of replies.
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
      // After the release, the frame passes through here again and must be delivered.
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

import { createConnection, type Socket } from "node:net";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { FaultProxy, Matches } from "../src/faults/stage.js";
import type { Exchange } from "../src/faults/topology/exchange.js";
import { startProxy } from "../src/faults/topology/proxy.js";
import { encodeCommand, RespParser, type RespValue } from "../src/faults/topology/resp.js";
import { type OwnServer, startServer } from "../src/faults/topology/server.js";

/** A connection through the proxy, with sequential replies. */
class Line {
  readonly #socket: Socket;
  readonly #waiting: { resolve(value: RespValue): void; reject(error: Error): void }[] = [];
  readonly pushed: RespValue[] = [];
  readonly #parser = new RespParser();

  constructor(port: number) {
    this.#socket = createConnection({ port, host: "127.0.0.1" });
    this.#socket.on("error", () => {});
    this.#socket.on("data", (bytes) => {
      for (const { value } of this.#parser.push(bytes)) {
        const next = this.#waiting.shift();
        if (next === undefined) this.pushed.push(value);
        else next.resolve(value);
      }
    });
    this.#socket.on("close", () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("cut"));
    });
  }

  send(...words: (string | number)[]): Promise<RespValue> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#socket.write(encodeCommand(words));
    });
  }

  end(): void {
    this.#socket.destroy();
  }
}

const isIncrement: Matches = (words) => words.join(" ") === "INCR n";

describe("a fault proxy", () => {
  let server: OwnServer;
  let proxy: FaultProxy;
  let seen: Exchange[];
  const lines: Line[] = [];

  function line(): Line {
    const made = new Line(proxy.port);
    lines.push(made);
    return made;
  }

  beforeEach(async () => {
    seen = [];
    server ??= await startServer({ durability: "1n" });
    await server.command("FLUSHALL");
    proxy = await startProxy({ targetPort: server.port, onExchange: (exchange) => void seen.push(exchange) });
    return async () => {
      for (const made of lines.splice(0)) made.end();
      await proxy.close();
    };
  });

  afterAll(() => server.stop());

  it("loses one request, which the server never gets, and forwards the next", async () => {
    const struck = proxy.loseRequest(isIncrement);
    await expect(line().send("INCR", "n")).rejects.toThrow("cut");
    await struck;
    expect(await line().send("INCR", "n")).toBe(1);
    expect(proxy.counts.lostRequests).toBe(1);
    expect(seen.map(({ forwardedMs }) => forwardedMs !== undefined)).toEqual([false, true]);
  });

  it("loses one reply after the server has executed the request", async () => {
    const struck = proxy.loseReply(isIncrement);
    await expect(line().send("INCR", "n")).rejects.toThrow("cut");
    await struck;
    expect(await line().send("INCR", "n")).toBe(2);
    expect(proxy.counts.lostReplies).toBe(1);
    expect(seen[0]).toMatchObject({ reply: 1 });
    expect(seen[0]?.deliveredMs).toBeUndefined();
    expect(seen[1]?.deliveredMs).toBeGreaterThanOrEqual(seen[1]?.repliedMs ?? Number.NaN);
  });

  it("forwards a request twice and replies once", async () => {
    const struck = proxy.duplicate(isIncrement);
    const one = line();
    expect(await one.send("INCR", "n")).toBe(2);
    await struck;
    expect(await one.send("INCR", "n")).toBe(3);
    expect(proxy.counts.duplicated).toBe(1);
  });

  it("delivers a copy of an answered request", async () => {
    const struck = proxy.duplicate(isIncrement, "first");
    const one = line();
    expect(await one.send("INCR", "n")).toBe(1);
    await struck;
    expect(await one.send("INCR", "n")).toBe(3);
    expect(seen.map(({ reply }) => reply)).toEqual([1, 3]);
  });

  it("delivers a request late, long after its client is gone", async () => {
    const [gone, other] = [line(), line()];
    // Both have arrived before it measures the delay.
    expect(await Promise.all([gone.send("GET", "n"), other.send("GET", "n")])).toEqual([null, null]);
    const struck = proxy.late(isIncrement, 500);
    await expect(gone.send("INCR", "n")).rejects.toThrow("cut");
    expect(await other.send("GET", "n")).toBe(null);
    await struck;
    expect(await server.command("GET", "n")).toBe("1");
    expect(proxy.counts).toMatchObject({ late: 1, lateArrivals: 1 });
    expect(proxy.takeLate().map(({ words }) => isIncrement(words))).toEqual([true]);
    expect(proxy.takeLate()).toEqual([]);
  });

  it("replies with an error in the order of requests, and does not forward the request", async () => {
    const struck = proxy.answerError(isIncrement, "MISCONF no disk");
    const one = line();
    const before = one.send("SET", "m", "1");
    const error = await one.send("INCR", "n");
    expect([await before, String(error)]).toEqual(["OK", "Error: MISCONF no disk"]);
    await struck;
    expect(await one.send("GET", "n")).toBe(null);
  });

  it("knows scripts by their names, whoever loaded them through it", async () => {
    const source = "-- holdfast mutex/acquire\nreturn 7";
    const one = line();
    const hash = String(await one.send("SCRIPT", "LOAD", source));
    const struck = proxy.loseReply(([command, script]) => command === "EVALSHA" && script === "mutex/acquire");
    await expect(one.send("EVALSHA", hash, 0)).rejects.toThrow("cut");
    await struck;
  });

  it("forwards nothing in the stalled direction, and everything afterward", async () => {
    const one = line();
    await one.send("SET", "n", "1");
    proxy.stall("replies");
    const answer = one.send("INCR", "n");
    await expect.poll(() => server.command("GET", "n")).toBe("2");
    expect(seen.at(-1)?.deliveredMs).toBeUndefined();
    proxy.resume();
    expect(await answer).toBe(2);

    proxy.stall("requests");
    const second = one.send("INCR", "n");
    await expect.poll(() => seen.length).toBe(3);
    expect(await server.command("GET", "n")).toBe("2");
    proxy.resume();
    expect(await second).toBe(3);
  });

  it("delays both directions and keeps the order", async () => {
    const one = line();
    const draws = [30, 1, 20, 1];
    proxy.delay(() => draws.shift() ?? 0);
    const beganMs = performance.now();
    expect(await Promise.all([one.send("INCR", "n"), one.send("INCR", "n")])).toEqual([1, 2]);
    // Timers end up to a millisecond early.
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(48);
    proxy.delay(undefined);
  });

  it("drops messages of channels, but not the confirmations of subscriptions", async () => {
    const listener = line();
    await listener.send("SUBSCRIBE", "c");
    proxy.dropMessages(1);
    expect(await server.command("PUBLISH", "c", "lost")).toBe(1);
    await expect.poll(() => proxy.counts.droppedMessages).toBe(1);
    proxy.dropMessages(0);
    await server.command("PUBLISH", "c", "found");
    await expect.poll(() => listener.pushed).toEqual([["message", "c", "found"]]);
    expect(seen.filter(({ sort }) => sort === "message").map(({ words }) => words[1])).toEqual(["lost", "found"]);
  });

  it("black-holes open connections, whose sides do not notice, and lets new ones through", async () => {
    const [gone, listener] = [line(), line()];
    await listener.send("SUBSCRIBE", "c");
    await gone.send("INCR", "n");
    expect(proxy.silence("all")).toBe(2);
    const never = gone.send("INCR", "n");
    never.catch(() => {});
    expect(await server.command("PUBLISH", "c", "lost")).toBe(1);
    expect(await line().send("GET", "n")).toBe("1");
    listener.end();
    gone.end();
    // A connection that forwards its end would be closed once the server has replied on another one.
    await line().send("PING");
    expect(await server.command("PUBLISH", "c", "lost")).toBe(1);
    expect(listener.pushed).toEqual([]);
    expect(proxy.counts.silenced).toBe(2);
  });

  it("closes subscribers on the server's side only", async () => {
    const [other, listener] = [line(), line()];
    await listener.send("SUBSCRIBE", "c");
    await other.send("PING");
    expect(proxy.silence("subscribers", { closesServerSide: true })).toBe(1);
    await expect.poll(() => server.command("PUBLISH", "c", "lost")).toBe(0);
    const unanswered = listener.send("PING").then(
      () => "answered",
      () => "closed",
    );
    expect(await other.send("PING")).toBe("PONG");
    expect(await Promise.race([unanswered, other.send("PING").then(() => "open")])).toBe("open");
  });

  it("forgets a fault that was disarmed", async () => {
    void proxy.loseRequest(isIncrement);
    proxy.disarm();
    expect(await line().send("INCR", "n")).toBe(1);
  });

  it("forwards thousands of commands without a loss", async () => {
    const all = Array.from({ length: 8 }, () => line());
    const answers = await Promise.all(all.flatMap((one) => Array.from({ length: 500 }, () => one.send("INCR", "n"))));
    expect(new Set(answers).size).toBe(4_000);
    expect(seen.every(({ deliveredMs }) => deliveredMs !== undefined)).toBe(true);
  });
});

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
// The built program, because the processes of a crew run it.
import { measureMoments } from "../dist/moments/measure.js";
import { startServer } from "../dist/server.js";
import { parseArguments } from "../src/arguments.js";
import { follow } from "../src/moments/hand-over.js";
import { momentsText } from "../src/moments/report.js";
import { machineMs } from "../src/worker/clock.js";
import { traced } from "../src/worker/traffic.js";

it("finds in a hand-over the release, its answer, and the message that woke the next one", () => {
  const first = { writtenMs: [5, 10.1, 30.1], answeredMs: [6, 10.4], toldMs: [] };
  const second = { writtenMs: [], answeredMs: [10.2], toldMs: [9, 10.6] };
  const followed = follow(
    [
      { from: 0, to: 1, endedAtMs: 10, startedAtMs: 11 },
      // The next section started before anything was written, so no message of this process caused it.
      { from: 0, to: 1, endedAtMs: 20, startedAtMs: 21 },
    ],
    [first, second],
  );
  expect(followed).toMatchObject({ handOvers: 2, leftOut: 1 });
  const rounded = Object.fromEntries(Object.entries(followed.us).map(([moment, us]) => [moment, Math.round(us)]));
  expect(rounded).toEqual({ written: 100, answered: 400, told: 600, started: 1_000 });
  expect(momentsText([{ name: "holdfast", everyMs: 8, ...followed }])).toContain("1,000");
});

it("records the traffic of sockets, distinguishes messages from replies, and restores the sockets", async () => {
  let peer: Socket | undefined;
  const server = createServer((accepted) => {
    peer = accepted;
    peer.once("data", () => accepted.write("+OK\r\n"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  const untracedPush = socket.push;
  const beganAtMs = machineMs();
  const { traffic } = await traced(async () => {
    let text = "";
    socket.write("PING\r\n");
    for await (const chunk of socket) {
      text += String(chunk);
      // The message is sent separately, because otherwise it might be read together with the reply.
      if (text === "+OK\r\n") peer?.write("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
      if (text.includes("x\r\n")) break;
    }
  });
  server.close();
  // The other end of the connection is in this process too: three writes, three reads.
  expect(traffic.writtenMs).toHaveLength(3);
  expect(traffic.toldMs).toHaveLength(1);
  expect(traffic.answeredMs).toHaveLength(2);
  expect(traffic.toldMs[0]).toBeGreaterThan(traffic.writtenMs[0] ?? Number.NaN);
  expect(traffic.writtenMs[0]).toBeGreaterThanOrEqual(beganAtMs);
  expect(socket.push).toBe(untracedPush);
});

it("traces real hand-overs, those of Holdfast and those of plain messages", async () => {
  const server = await startServer();
  try {
    const connection = { port: server.port, autoPipelining: false, leaseMs: 30_000 };
    const lines = await measureMoments(
      { server, servers: [], connection, repetitions: 1, callers: 1, leases: 1, waiters: 1 },
      0.5,
    );
    expect(lines.map(({ name }) => name)).toEqual([
      "publish, every ms",
      "holdfast/strict",
      "publish, every 8 ms",
      "holdfast",
    ]);
    for (const { handOvers, leftOut, us } of lines) {
      expect(handOvers).toBeGreaterThan(0);
      expect(leftOut).toBeLessThan(handOvers / 2);
      expect(us.written).toBeGreaterThan(0);
      expect(us.answered).toBeGreaterThan(us.written);
      expect(us.told).toBeGreaterThan(us.written);
      expect(us.started).toBeGreaterThan(us.told);
    }
  } finally {
    await server.stop();
  }
});

it("runs as a separate command", () => {
  expect(parseArguments(["--moments"])).toMatchObject({ moments: true, measurements: [], curves: [], profiles: [] });
  expect(() => parseArguments(["--moments", "--profile"])).toThrow("--profile and --moments");
  for (const option of ["--only", "--adapters"])
    expect(() => parseArguments(["--moments", option, "holdfast"])).toThrow("leave out --only and --adapters");
});

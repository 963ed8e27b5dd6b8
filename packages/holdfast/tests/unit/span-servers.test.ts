import { expect, test } from "vitest";
import { Servers } from "../../src/integrations/otel/servers.js";

const COMMAND = { script: "mutex/acquire", durationMs: 1, error: undefined };
const server = { host: "redis.internal", port: 6379 };

test("a lock has the server that answered last, until too many others were used", () => {
  const servers = new Servers();
  servers.heard({ ...COMMAND, lockName: "first", server });
  servers.heard({ ...COMMAND, lockName: "first", server: { host: "replica.internal", port: 6380 } });
  expect(servers.of("mutex", "first")).toEqual({ "server.address": "replica.internal", "server.port": 6380 });
  for (let i = 0; i < 999; i += 1) servers.heard({ ...COMMAND, lockName: `order:${i}`, server });
  expect(servers.of("mutex", "first")).not.toEqual({});
  servers.heard({ ...COMMAND, lockName: "one more", server });
  expect(servers.of("mutex", "first")).toEqual({});
  expect(servers.of("mutex", "order:0")).not.toEqual({});
});

test("nothing is said of a server that nobody knows, of a port that there is not, and of a quorum", () => {
  const servers = new Servers();
  servers.heard({ ...COMMAND, lockName: "order", server: { host: "/run/redis.sock", port: undefined } });
  expect(servers.of("mutex", "order")).toEqual({ "server.address": "/run/redis.sock" });
  expect(servers.of("redlock", "order")).toEqual({});
  servers.heard({ ...COMMAND, lockName: "order", server: undefined });
  expect(servers.of("mutex", "order")).toEqual({});
});

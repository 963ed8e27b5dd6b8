import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { startRedis } from "../src/servers/redis-server.js";

// A test of Sentinel failed because another test had the port of the killed master while it looked for a free one.
it("a server restarts although another process has its port for a moment", async () => {
  const server = await startRedis();
  try {
    await server.kill();
    const other = createServer().listen(server.port, "127.0.0.1");
    await once(other, "listening");
    const restarting = server.restart();
    setTimeout(() => other.close(), 500);
    await restarting;
    expect(await server.command("PING")).toBe("PONG");
  } finally {
    await server.stop();
  }
});

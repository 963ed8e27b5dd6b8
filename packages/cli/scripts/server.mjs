// @ts-check
/** Starts a separate Redis server for a script that measures. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { env } from "node:process";

/**
 * Starts the server without waiting until it answers. The first command that is measured waits for it.
 *
 * @param {string} folder  the working directory of the server
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
export async function startServer(folder) {
  const port = await freePort();
  const binary = env.HOLDFAST_REDIS_SERVER ?? "redis-server";
  const flags = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", ""];
  const server = spawn(binary, flags, { cwd: folder, stdio: "ignore" });
  const stop = async () => {
    server.kill("SIGKILL");
    await once(server, "exit").catch(() => {});
  };
  return { url: `redis://127.0.0.1:${port}`, stop };
}

/** @returns {Promise<number>} */
async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

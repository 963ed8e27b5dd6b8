import { expect, it } from "vitest";
// The built program, because the processes of a crew run it.
import { Crew } from "../dist/crew.js";
import { startServer } from "../dist/server.js";

it("a crew whose preparation fails is ended, because its processes would keep the benchmark running", async () => {
  const server = await startServer();
  try {
    await expectEnded(server.port);
  } finally {
    await server.stop();
  }
});

async function expectEnded(port: number): Promise<void> {
  const connection = { port, autoPipelining: false, leaseMs: 30_000 };
  let pids: readonly number[] = [];
  const preparing = Crew.prepared({ name: "raw", connection, processes: 2 }, async (crew) => {
    pids = crew.pids;
    throw new Error("it did not reply");
  });
  await expect(preparing).rejects.toThrow("it did not reply");
  expect(pids).toHaveLength(2);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
}

/** Group F: client, topology, package. README.md lists the rows that are tested elsewhere. */
import { expect, test } from "vitest";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("F7: scripts are sent as EVALSHA, never as text", async () => {
  const counted = await scene.count();
  for (let i = 0; i < 20; i += 1) await scene.lock.run(() => i);
  expect(await counted()).toMatchObject({ scripts: 40, evals: 0 });
});

/** A console in a program that records its own history must not record a pause twice. */
import { type HistoryRecorder, readHistory, recordHistory } from "holdfast/admin";
import { expect, it } from "vitest";
import { ACTIONS } from "../src/api.js";
import { redisScene, startConsole } from "./scene.js";

const redis = redisScene();

it("a pause, its new end and its resume are recorded once each, with the actor", async () => {
  const recorder: HistoryRecorder = recordHistory(redis.holdfast);
  try {
    const page = await (await startConsole({ holdfast: redis.holdfast, allow: ACTIONS })).signIn("ana");
    const place = { kind: "mutex", name: "told-once" };
    const paused = await page.post("api/actions/pause", { ...place, reason: "db", untilAtMs: null });
    const { id } = paused.json.lock.row.pause;
    const untilAtMs = 8_000_000_000_000;
    const longer = { ...place, reason: "longer", untilAtMs, pauseId: id };
    const extended = await page.post("api/actions/extend-pause", longer);
    const { id: last } = extended.json.lock.row.pause;
    expect((await page.post("api/actions/resume", { ...place, reason: "done", pauseId: last })).status).toBe(200);
    await recorder.flush();
    expect(recorder.appended).toBeGreaterThanOrEqual(3);
    const entries = await readHistory(redis.holdfast, { name: "told-once" });
    expect(entries.map(({ outcome, reason }) => `${outcome}: ${reason}`).toSorted()).toEqual([
      "paused: db",
      "paused: longer",
      "resumed: done",
    ]);
    expect(entries.map(({ by }) => by)).toEqual(["ana", "ana", "ana"]);
  } finally {
    await recorder.stop();
  }
});

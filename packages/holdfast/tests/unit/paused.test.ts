/** A pause among the claims of a lock: told apart from who works and who waits, and when it stands in the way. */
import { describe, expect, test } from "vitest";
import { AcquireTimeoutError, PausedError } from "../../src/core/errors.js";
import { pauseApart, standingPause } from "../../src/core/paused.js";
import type { HolderState, State } from "../../src/core/steps.js";
import { ManualRuntime } from "./manual-runtime.js";
import { NOBODY, ScriptedLock } from "./scripted-lock.js";

/** As it stands in the keys: from 1 000 to 2 000 s after 1970. */
const CLAIM = "pause/1000000/2000000/1/x/ops%20team/schema%20change";
const PAUSE = { by: "ops team", label: "schema change", sinceAtMs: 1_000_000, untilAtMs: 2_000_000, owner: CLAIM };
const WITHOUT_END = "pause/1000000/9000000000000/1/x/ops/why";

const holder = (owner: string): HolderState => ({ owner, token: 5, leaseLeftMs: 1_000 });
const state = (holders: readonly string[], waiters: readonly string[], ahead?: number): State => ({
  holders: holders.map(holder),
  token: 5,
  waiterCount: waiters.length,
  waiters,
  ahead,
});

describe("what a server says of a lock", () => {
  test("is as it is where nobody has paused it", () => {
    for (const said of [NOBODY, state(["a/1/1000/1"], []), state(["a/1/1000/1"], ["b/1/1000/1", "c/1/1000/1"], 1)]) {
      expect(pauseApart(said)).toBe(said);
    }
  });

  test("names a pause that holds as none of the holders, whichever of them it is", () => {
    for (const holders of [[CLAIM], [CLAIM, "a/1/1000/1", "b/1/1000/1"], ["a/1/1000/1", CLAIM, "b/1/1000/1"]]) {
      const said = state(holders, ["c/1/1000/1", "d/1/1000/1"], 1);
      const others = holders.filter((owner) => owner !== CLAIM).map(holder);
      expect(pauseApart(said)).toEqual({ ...said, holders: others, pause: PAUSE });
      expect(said.holders).toHaveLength(holders.length);
    }
  });

  test("names a pause that waits for the holders as nobody who waits, nor as one who is before others", () => {
    const said = state(["a/1/1000/1"], [CLAIM, "c/1/1000/1", "d/1/1000/1"], 2);
    const waiters = ["c/1/1000/1", "d/1/1000/1"];
    expect(pauseApart(said)).toEqual({ ...said, waiterCount: 2, waiters, ahead: 1, pause: PAUSE });
    expect(pauseApart({ ...said, ahead: undefined }).ahead).toBeUndefined();
    // More wait than are listed.
    expect(pauseApart({ ...said, waiterCount: 900 }).waiterCount).toBe(899);
  });

  test("takes no client for a pause, whatever it calls its work", () => {
    for (const owner of ["a/1/1000/1/pause%2F1%2F2%2F3", "pause/1/1000/1", "pauses/1000000/2000000/1/x/by/why"]) {
      expect(pauseApart(state([owner], []))).not.toHaveProperty("pause");
      expect(pauseApart(state([], [owner])).waiterCount).toBe(1);
    }
  });

  test("keeps what a kind says beside it", () => {
    const said = { ...state([CLAIM], []), permits: 3 };
    expect(pauseApart(said)).toMatchObject({ permits: 3, token: 5, holders: [], pause: PAUSE });
  });

  test("has a pause without an end where somebody has to resume", () => {
    expect(pauseApart(state([WITHOUT_END], [])).pause).toMatchObject({ by: "ops", untilAtMs: undefined });
  });
});

describe("a pause stands in the way", () => {
  const runtime = new ManualRuntime();
  const until = (untilAtMs: number | undefined): State => ({ ...NOBODY, pause: { ...PAUSE, untilAtMs } });

  test("until its end, or somebody resumes", () => {
    const now = runtime.wallMs();
    expect(standingPause({ runtime }, until(now + 1))).toEqual({ ...PAUSE, untilAtMs: now + 1 });
    expect(standingPause({ runtime }, until(now))).toBeUndefined();
    expect(standingPause({ runtime }, until(now - 1))).toBeUndefined();
    expect(standingPause({ runtime }, until(undefined))).toEqual({ ...PAUSE, untilAtMs: undefined });
  });

  test("only if there is one", () => {
    expect(standingPause({ runtime }, undefined)).toBeUndefined();
    expect(standingPause({ runtime }, NOBODY)).toBeUndefined();
  });
});

describe("who does not get a paused lock", () => {
  const failure = async (restMs: number | undefined): Promise<unknown> => {
    const world = new ScriptedLock();
    const untilAtMs = restMs === undefined ? undefined : world.runtime.wallMs() + restMs;
    world.answers.acquire = async () => ({ outcome: "refused", restMs: 1_000, nowUs: 1 });
    world.answers.inspect = async () => ({ ...NOBODY, pause: { ...PAUSE, untilAtMs } });
    return world.lock.acquire({ waitMs: 0 }).catch((error: unknown) => error);
  };

  test("is told who paused it, why, since when and until when", async () => {
    const error = (await failure(60_000)) as PausedError;
    expect(error).toBeInstanceOf(PausedError);
    const untilAtMs = new ManualRuntime().wallMs() + 60_000;
    const { by, label, sinceAtMs } = PAUSE;
    expect(error).toMatchObject({ code: "ERR_LOCK_PAUSED", lockName: "scripted", by, label, sinceAtMs, untilAtMs });
    expect(error.message).toContain('"ops team" for "schema change" since 1970-01-01T00:16:40.000Z');
    expect(error.message).toContain(`until ${new Date(untilAtMs).toISOString()}`);
  });

  test("is told that it lasts until somebody resumes it, if so", async () => {
    const error = (await failure(undefined)) as PausedError;
    expect(error).toMatchObject({ code: "ERR_LOCK_PAUSED", untilAtMs: undefined });
    expect(error.message).toContain("until somebody resumes it");
  });

  test("is told of a timeout where the pause is over and goes as soon as somebody asks", async () => {
    const error = (await failure(0)) as AcquireTimeoutError;
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error.message).not.toContain("paused");
  });
});

/** A pause as a server tells of it, and when it stands in the way. */
import { describe, expect, test } from "vitest";
import { AcquireTimeoutError, PausedError } from "../../src/core/errors.js";
import type { State } from "../../src/core/protocol.js";
import { pauseOf, standingPause } from "../../src/core/protocol.js";
import { ManualRuntime } from "./manual-runtime.js";
import { NOBODY, ScriptedLock } from "./scripted-lock.js";

/** As it stands in its key: from 1 000 to 2 000 s after 1970. */
const TEXT = "pause/1000000/2000000/1/x/ops%20team/schema%20change";
const PAUSE = { by: "ops team", label: "schema change", sinceAtMs: 1_000_000, untilAtMs: 2_000_000, owner: TEXT };
const WITHOUT_END = "pause/1000000/9000000000000/1/x/ops/why";

describe("what a server says of a pause", () => {
  test("tells who, why, and from when until when", () => {
    expect(pauseOf(TEXT)).toEqual({ pause: PAUSE });
    expect(pauseOf(WITHOUT_END).pause).toMatchObject({ by: "ops", untilAtMs: undefined });
  });

  test("is nothing where there is none, and where another program has written the key", () => {
    for (const text of ["", "pause/1/1000/1", "pauses/1000000/2000000/1/x/by/why", "a/1/1000/1/pause%2F1%2F2%2F3"]) {
      expect(pauseOf(text)).toEqual({});
    }
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

  test("is told that it lasts until someone resumes it, if so", async () => {
    const error = (await failure(undefined)) as PausedError;
    expect(error).toMatchObject({ code: "ERR_LOCK_PAUSED", untilAtMs: undefined });
    expect(error.message).toContain("until someone resumes it");
  });

  test("is told of a timeout where the pause is over and goes as soon as somebody asks", async () => {
    const error = (await failure(0)) as AcquireTimeoutError;
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error.message).not.toContain("paused");
  });
});

/** Parses a pause from a server's reply and decides whether it still applies. */
import { describe, expect, test } from "vitest";
import { AcquireTimeoutError, PausedError } from "../../src/core/errors.js";
import type { State } from "../../src/core/protocol.js";
import { pauseOf, standingPause } from "../../src/core/protocol.js";
import { ManualRuntime } from "./manual-runtime.js";
import { NOBODY, ScriptedLock } from "./scripted-lock.js";

/** The value of the pause key: from 1 000 s to 2 000 s after 1970. */
const TEXT = "pause/1000000/2000000/1/x/ops%20team/schema%20change";
const PAUSE = { by: "ops team", label: "schema change", sinceAtMs: 1_000_000, untilAtMs: 2_000_000, owner: TEXT };
const WITHOUT_END = "pause/1000000/9000000000000/1/x/ops/why";

describe("a pause in a server's reply", () => {
  test("contains its author, reason, start and end", () => {
    expect(pauseOf(TEXT)).toEqual({ pause: PAUSE });
    expect(pauseOf(WITHOUT_END).pause).toMatchObject({ by: "ops", untilAtMs: undefined });
  });

  test("is ignored if it is empty or was written by another program", () => {
    for (const text of ["", "pause/1/1000/1", "pauses/1000000/2000000/1/x/by/why", "a/1/1000/1/pause%2F1%2F2%2F3"]) {
      expect(pauseOf(text)).toEqual({});
    }
  });
});

describe("a pause applies", () => {
  const runtime = new ManualRuntime();
  const until = (untilAtMs: number | undefined): State => ({ ...NOBODY, pause: { ...PAUSE, untilAtMs } });

  test("until it ends, or until someone resumes the lock", () => {
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

describe("an acquire of a paused lock", () => {
  const failure = async (restMs: number | undefined): Promise<unknown> => {
    const world = new ScriptedLock();
    const untilAtMs = restMs === undefined ? undefined : world.runtime.wallMs() + restMs;
    world.answers.acquire = async () => ({ outcome: "refused", restMs: 1_000, nowUs: 1 });
    world.answers.inspect = async () => ({ ...NOBODY, pause: { ...PAUSE, untilAtMs } });
    return world.lock.acquire({ waitMs: 0 }).catch((error: unknown) => error);
  };

  test("fails with the author, reason, start and end of the pause", async () => {
    const error = (await failure(60_000)) as PausedError;
    expect(error).toBeInstanceOf(PausedError);
    const untilAtMs = new ManualRuntime().wallMs() + 60_000;
    const { by, label, sinceAtMs } = PAUSE;
    expect(error).toMatchObject({ code: "ERR_LOCK_PAUSED", lockName: "scripted", by, label, sinceAtMs, untilAtMs });
    expect(error.message).toContain('"ops team" for "schema change" from 1970-01-01T00:16:40.000Z');
    expect(error.message).toContain(`until ${new Date(untilAtMs).toISOString()}`);
  });

  test("fails with a message that the pause lasts until it is resumed", async () => {
    const error = (await failure(undefined)) as PausedError;
    expect(error).toMatchObject({ code: "ERR_LOCK_PAUSED", untilAtMs: undefined });
    expect(error.message).toContain("until it is resumed");
  });

  test("fails with a timeout if the pause has already ended", async () => {
    const error = (await failure(0)) as AcquireTimeoutError;
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error.message).not.toContain("paused");
  });
});

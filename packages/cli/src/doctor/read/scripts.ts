/** Checks whether the server accepts every script of the library. */
import { scripts as ofInterop } from "@holdfast/interop/internal";
import { scripts as ofRecipes } from "@holdfast/recipes/internal";
import { scripts as ofRedlockCompat } from "@holdfast/redlock-compat/internal";
import { type ScriptSample, samplesOf, scriptSamples } from "holdfast/diagnosis";
import type { ScriptFacts } from "../facts.js";
import { isReply, type Link, wordsOf } from "./link.js";

const SAMPLES: readonly ScriptSample[] = [
  ...scriptSamples,
  ...[ofInterop, ofRecipes, ofRedlockCompat].flatMap((generated) => samplesOf(generated)),
];
const CALLED = "-- called by the doctor\nreturn 1";

/** Loads all scripts, and calls one of the doctor's own. @throws Error  no reply */
export async function readScripts({ redis, place }: Link): Promise<ScriptFacts> {
  const answers = await Promise.allSettled(SAMPLES.map(({ source }) => redis.call("SCRIPT", "LOAD", source)));
  const refused: string[] = [];
  for (const [at, answer] of answers.entries()) {
    if (answer.status === "fulfilled") continue;
    if (!isReply(answer.reason)) throw answer.reason;
    refused.push(`${SAMPLES[at]?.name}: ${wordsOf(answer.reason)}`);
  }
  const called = async (...keys: string[]): Promise<string | undefined> => {
    try {
      await redis.call("EVALSHA", String(await redis.call("SCRIPT", "LOAD", CALLED)), String(keys.length), ...keys);
    } catch (error) {
      return wordsOf(error);
    }
    return undefined;
  };
  const notCalled = await called(place.key);
  const notCalledWithoutKeys = notCalled === undefined ? await called() : undefined;
  return {
    loaded: answers.length - refused.length,
    refused,
    ...(notCalled === undefined ? {} : { notCalled }),
    ...(notCalledWithoutKeys === undefined ? {} : { notCalledWithoutKeys }),
  };
}

/** Whether the server takes every script of the library. */
import { scriptSamples } from "holdfast/diagnosis";
import type { ScriptFacts } from "../facts.js";
import { isReply, type Link, wordsOf } from "./link.js";

const CALLED = "-- called by the doctor\nreturn 1";

/** Loads them all, and calls one of its own. @throws Error  no answer */
export async function readScripts({ redis, place }: Link): Promise<ScriptFacts> {
  const answers = await Promise.allSettled(scriptSamples.map(({ source }) => redis.call("SCRIPT", "LOAD", source)));
  const refused: string[] = [];
  for (const [at, answer] of answers.entries()) {
    if (answer.status === "fulfilled") continue;
    if (!isReply(answer.reason)) throw answer.reason;
    refused.push(`${scriptSamples[at]?.name}: ${wordsOf(answer.reason)}`);
  }
  const notCalled = await redis
    .call("SCRIPT", "LOAD", CALLED)
    .then((sha) => redis.call("EVALSHA", String(sha), "1", place.key))
    .then(
      () => undefined,
      (error: unknown) => wordsOf(error),
    );
  return { loaded: answers.length - refused.length, refused, ...(notCalled === undefined ? {} : { notCalled }) };
}

/** Sends a test message to the doctor's own inbox with a script, the way grants are sent. */
import type { Redis } from "ioredis";
import type { InboxFacts } from "../facts.js";
import { isReply, type Link, wordsOf } from "./link.js";

const PUBLISH = "-- the doctor's own inbox\nreturn redis.call('PUBLISH', ARGV[1], ARGV[2])";
const SPUBLISH = "-- the doctor's own inbox\nreturn redis.call('SPUBLISH', ARGV[1], ARGV[2])";
/** A message that takes longer counts as lost. */
const ARRIVAL_MS = 1_000;

/** @throws Error  no reply */
export async function readInbox(link: Link): Promise<InboxFacts | undefined> {
  if (!link.isPrimary) return undefined;
  const { topology, info } = link;
  const major = Number((info.get("valkey_version") ?? info.get("redis_version") ?? "7").split(".")[0]);
  const isSharded = topology === "cluster" && major >= 7;
  const listener = link.another();
  try {
    await listener.connect();
    return { isSharded, ...(await exchange(link, listener, isSharded)) };
  } catch (error) {
    if (!isReply(error)) throw error;
    return { isSharded, failure: wordsOf(error) };
  } finally {
    listener.disconnect();
  }
}

async function exchange(
  { redis, place: { key, channel }, endAtMs }: Link,
  listener: Redis,
  isSharded: boolean,
): Promise<{ receivers: number; arrivedMs?: number }> {
  const word = `probe ${channel}`;
  let sentAtMs = 0;
  let timer: NodeJS.Timeout | undefined;
  const arrival = new Promise<number | undefined>((resolve) => {
    const onMessage = (where: string, text: string): void => {
      if (where === channel && text === word) resolve(performance.now() - sentAtMs);
    };
    listener.on("message", onMessage).on("smessage", onMessage);
    timer = setTimeout(resolve, Math.max(0, Math.min(ARRIVAL_MS, endAtMs - performance.now())), undefined);
  });
  try {
    await (isSharded ? listener.ssubscribe(channel) : listener.subscribe(channel));
    const sha = String(await redis.call("SCRIPT", "LOAD", isSharded ? SPUBLISH : PUBLISH));
    timer?.refresh();
    sentAtMs = performance.now();
    const receivers = Number(await redis.call("EVALSHA", sha, "1", key, channel, word));
    const arrivedMs = await arrival;
    return { receivers, ...(arrivedMs === undefined ? {} : { arrivedMs }) };
  } finally {
    clearTimeout(timer);
  }
}

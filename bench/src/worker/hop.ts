/** The minimum for a hand-over between processes: one PUBLISH, and the message at the subscriber. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../adapters/adapter.js";
import { newIoredis } from "../adapters/client.js";
import { machineMs } from "./clock.js";
import type { Hop, HopDone } from "./orders.js";

/** Connects one process of the ring. `run` resolves to the messages that it received. */
export async function openHop(
  connection: Connection,
): Promise<{ run(order: Hop): Promise<HopDone[]>; close(): Promise<void> }> {
  const publisher = await newIoredis(connection);
  const subscriber = await newIoredis(connection);
  return {
    async run({ index, ring, pauseMs, untilMs }) {
      const hops: HopDone[] = [];
      const pass = async (): Promise<void> => {
        await sleep(pauseMs);
        if (machineMs() < untilMs) await publisher.publish(channelOf((index + 1) % ring), `${machineMs()}`);
      };
      const onMessage = (_channel: string, sentAtMs: string): void => {
        hops.push({ sentAtMs: Number(sentAtMs), cameAtMs: machineMs() });
        void pass();
      };
      subscriber.on("message", onMessage);
      await subscriber.subscribe(channelOf(index));
      // The first process waits until all have subscribed, because a message without a receiver would be the last one.
      if (index === 0) {
        while ((await publisher.pubsub("NUMSUB", channelOf(ring - 1)))[1] !== 1) await sleep(1);
        for (let other = 1; other < ring; other += 1)
          while ((await publisher.pubsub("NUMSUB", channelOf(other)))[1] !== 1) await sleep(1);
        await pass();
      }
      await sleep(Math.max(0, untilMs - machineMs()));
      subscriber.off("message", onMessage);
      return hops;
    },
    async close() {
      await Promise.all([publisher.quit(), subscriber.quit()]);
    },
  };
}

function channelOf(index: number): string {
  return `hop:${index}`;
}

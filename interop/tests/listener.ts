/** Records the messages on channels of a server, in order. */
import { Redis } from "ioredis";
import { until } from "../../packages/holdfast/src/testing/delays.js";

/** One message. */
export interface Heard {
  readonly channel: string;
  readonly message: string;
}

/** A subscriber that records messages. */
export interface Listener {
  /**
   * The messages since the last call. Publishes a marker first, to be sure that no earlier message is still in
   * transit.
   */
  heard(): Promise<Heard[]>;
  stop(): void;
}

const MARK = "listener:mark";

/** Subscribes to all channels that match one of the `patterns`. */
export async function listen(port: number, ...patterns: readonly string[]): Promise<Listener> {
  const subscriber = new Redis({ port, host: "127.0.0.1" });
  const speaker = new Redis({ port, host: "127.0.0.1" });
  let messages: Heard[] = [];
  let marks = 0;
  let marked = 0;
  subscriber.on("pmessage", (_: string, channel: string, message: string) => {
    if (channel === MARK) marked = Number(message);
    else messages.push({ channel, message });
  });
  await subscriber.psubscribe(MARK, ...patterns);
  return {
    async heard() {
      marks += 1;
      await speaker.publish(MARK, `${marks}`);
      await until(() => marked === marks, "the mark comes back");
      const all = messages;
      messages = [];
      return all;
    },
    stop() {
      subscriber.disconnect();
      speaker.disconnect();
    },
  };
}

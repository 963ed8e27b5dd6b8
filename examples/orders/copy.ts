/**
 * One copy of the order service as a process, as a container would run it. Its parent sends the settings.
 *
 * It ends when the parent closes the channel or dies, so that no copy is left behind.
 */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { startOrderService } from "./order-service.js";

/** The only message from the parent. */
export interface CopyOrders {
  readonly name: string;
  readonly gatewayUrl: string;
  readonly tableUrl: string;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly withKey: boolean;
}

/** The reply when the copy listens. */
export interface CopyReady {
  readonly url: string;
}

process.once("message", (message) => void start(message as CopyOrders));

async function start({ name, gatewayUrl, tableUrl, redisUrl, prefix, withKey }: CopyOrders): Promise<void> {
  const redis = withKey ? new Redis(redisUrl) : undefined;
  // ioredis reconnects by itself. Without a listener it would print every failed attempt.
  redis?.on("error", (error: Error) => console.error(`${name}: Redis: ${error.message}`));
  const holdfast = redis && createHoldfast({ redis, prefix, clientName: `orders ${name}` });
  const service = await startOrderService({ name, gatewayUrl, tableUrl, holdfast });

  process.once("disconnect", () => {
    void service
      .close()
      .then(() => holdfast?.close())
      .then(() => redis?.disconnect());
  });
  const ready: CopyReady = { url: service.url };
  process.send?.(ready);
}

/**
 * A NestJS service that closes invoices. Two requests never close one invoice at the same time, not even in two copies
 * of the service.
 *
 *     npm start                                                 in this folder, after `npm run build` in the checkout
 *     curl -X POST http://127.0.0.1:3000/invoices/7/close
 *
 * With REDIS_URL, all copies share the locks. Without it, the locks are in this process.
 */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { embedded } from "@holdfast/embedded";
import { HeldLease, HoldfastExceptionFilter, HoldfastModule, Locked } from "@holdfast/nestjs";
import { Controller, HttpCode, Injectable, Module, Param, Post } from "@nestjs/common";
import { APP_FILTER, NestFactory } from "@nestjs/core";
import type { Lease } from "holdfast";
import { Redis } from "ioredis";

const { REDIS_URL, PORT = "3000" } = process.env;
const server = REDIS_URL === undefined ? { store: embedded() } : { redis: new Redis(REDIS_URL) };

@Injectable()
export class Invoices {
  /** Stands for a database: the closed invoices, each with the fencing token of the request that closed it. */
  readonly #closed = new Map<string, number>();

  // Charges the customer unless the invoice is closed already. Only the lock makes these two steps one.
  @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 5_000 })
  async close(id: string, @HeldLease() lease?: Lease): Promise<{ invoice: string; charged: boolean }> {
    if (this.#closed.has(id)) return { invoice: id, charged: false };
    await sleep(50, undefined, { signal: lease?.signal }); // the payment; stops if the lock is lost
    lease?.assertHeld();
    this.#closed.set(id, lease?.token ?? 0);
    return { invoice: id, charged: true };
  }
}

@Controller("invoices")
export class InvoicesController {
  constructor(private readonly invoices: Invoices) {}

  @Post(":id/close")
  @HttpCode(200)
  async close(@Param("id") id: string) {
    return this.invoices.close(id);
  }
}

@Module({
  imports: [HoldfastModule.forRoot({ ...server, graceMs: 25_000 })],
  controllers: [InvoicesController],
  providers: [Invoices, { provide: APP_FILTER, useClass: HoldfastExceptionFilter }],
})
export class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.enableShutdownHooks(); // on SIGTERM, finishes requests, releases the locks and then ends the process
await app.listen(Number(PORT), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);

/**
 * A Nest service with locked methods: closing an invoice waits for its turn, and only one caller runs the month's end.
 */
import { strict as assert } from "node:assert";
import process from "node:process";
import { HeldLease, HoldfastExceptionFilter, HoldfastModule, Locked, type Refusal } from "@holdfast/nestjs";
import { Controller, Injectable, Module, Param, Post } from "@nestjs/common";
import { APP_FILTER, NestFactory } from "@nestjs/core";
import { createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";

const REDIS = Symbol("redis");
const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");

@Injectable()
export class Bank {
  readonly charged: { invoice: string; token: number }[] = [];

  async charge(invoice: string, { token, signal }: { token: number; signal: AbortSignal }): Promise<void> {
    signal.throwIfAborted();
    this.charged.push({ invoice, token });
  }
}

@Injectable()
export class Invoices {
  constructor(private readonly bank: Bank) {}

  @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 5_000 })
  async close(id: string, @HeldLease() lease?: Lease) {
    const { signal, token } = lease as Lease; // passed by the decorator
    await this.bank.charge(id, { signal, token });
    return { closed: id };
  }

  // A caller that arrives while it runs does not wait, and the refusal says who runs it.
  @Locked({ name: "month-end", waitMs: 0, whenBusy: "skip", label: "month end" })
  async monthEnd(@HeldLease() lease?: Lease): Promise<string | Refusal> {
    lease?.assertHeld();
    return "done";
  }
}

@Controller("invoices")
export class InvoicesController {
  constructor(private readonly invoices: Invoices) {}

  @Post(":id/close")
  async close(@Param("id") id: string) {
    return this.invoices.close(id);
  }

  @Post(":id/remind")
  @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0, noLease: true })
  async remind(@Param("id") id: string) {
    return { reminded: id };
  }
}

@Module({ providers: [{ provide: REDIS, useValue: redis }], exports: [REDIS] })
export class RedisModule {}

@Module({
  imports: [
    HoldfastModule.forRootAsync({
      imports: [RedisModule],
      inject: [REDIS],
      useFactory: (redis: Redis) => ({ redis, graceMs: 25_000 }),
    }),
  ],
  controllers: [InvoicesController],
  providers: [Bank, Invoices, { provide: APP_FILTER, useClass: HoldfastExceptionFilter }],
})
export class AppModule {}

const app = await NestFactory.create(AppModule, { logger: false });
app.enableShutdownHooks(); // SIGTERM closes it
await app.listen(0, "127.0.0.1");
const url = await app.getUrl();
const post = (path: string): Promise<Response> => fetch(`${url}/invoices/${path}`, { method: "POST" });

assert.deepEqual(await (await post("7/close")).json(), { closed: "7" });
assert.equal(app.get(Bank).charged.length, 1);

const holdfast = createHoldfast({ redis });
const lease = await holdfast.mutex("invoice:7").acquire({ label: "import" });
const refused = await post("7/remind");
assert.equal(refused.status, 409);
assert.deepEqual(await refused.json(), { statusCode: 409, error: "Conflict", code: "ERR_LOCK_ACQUIRE_TIMEOUT" });
await lease.release();
assert.equal((await post("7/remind")).status, 201);

await holdfast.mutex("month-end").run(
  async () => {
    const found = await app.get(Invoices).monthEnd();
    assert.ok(typeof found === "object" && found.reason === "held" && found.label === "by hand");
  },
  { label: "by hand" },
);
assert.equal(await app.get(Invoices).monthEnd(), "done");

await app.close();
assert.equal(await redis.ping(), "PONG"); // Holdfast does not close your client
await holdfast.close();
redis.disconnect();

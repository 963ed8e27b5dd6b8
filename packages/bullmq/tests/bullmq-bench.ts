/** A server, two Holdfast instances and separate queues for each test of `@holdfast/bullmq`. */
import { randomUUID } from "node:crypto";
import { type ConnectionOptions, type Job, Queue, Worker, type WorkerOptions } from "bullmq";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { deferred, sleep } from "../../holdfast/src/testing/delays.js";

/** The data of a job. */
export interface Bill {
  readonly n: number;
}

/** How long a test waits for an expected change. */
export const eventually = { timeout: 15_000, interval: 10 };

/** Shared setup of a test file, with new queue names and keys for each test. */
export class Bench {
  server!: RedisServer;
  redis!: Redis;
  holdfast!: Holdfast;
  other!: Holdfast;
  queueName = "";
  key = "";
  #jobs!: Redis;
  readonly #clients: Redis[] = [];
  readonly #closing: (() => Promise<unknown>)[] = [];

  constructor() {
    beforeAll(async () => {
      this.server = await startRedis();
      this.redis = this.#client();
      this.#jobs = this.#client(null);
      this.holdfast = createHoldfast({ redis: this.#client() });
      this.other = createHoldfast({ redis: this.#client() });
    });
    beforeEach(() => {
      this.queueName = `invoices-${randomUUID()}`;
      this.key = `customer:${randomUUID()}`;
    });
    afterEach(async () => {
      for (const close of this.#closing.splice(0).reverse()) await close();
    });
    afterAll(async () => {
      await Promise.all([this.holdfast?.close(), this.other?.close()]);
      for (const client of this.#clients) client.disconnect();
      await this.server?.stop();
    });
  }

  /** An existing client, because BullMQ may be installed where it cannot resolve ioredis. */
  get connection(): ConnectionOptions {
    // BullMQ's types refer to its own copy of ioredis.
    return this.#jobs as unknown as ConnectionOptions;
  }

  /** Registers a cleanup for the end of the test. Cleanups run in reverse order. */
  atEnd(close: () => Promise<unknown>): void {
    this.#closing.push(close);
  }

  queue(name = this.queueName): Queue<Bill> {
    const made = new Queue<Bill>(name, { connection: this.connection });
    this.atEnd(() => made.close());
    return made;
  }

  worker(processor: ConstructorParameters<typeof Worker<Bill>>[1], options: Partial<WorkerOptions> = {}): Worker<Bill> {
    const made = new Worker<Bill>(this.queueName, processor, { connection: this.connection, ...options });
    made.on("error", () => {});
    this.atEnd(() => made.close(true));
    return made;
  }

  async add(options: Parameters<Queue["add"]>[2] = {}): Promise<Job<Bill>> {
    return await this.queue().add("bill", { n: 1 }, options);
  }

  async addMany(count: number): Promise<void> {
    await this.queue().addBulk(Array.from({ length: count }, (_, n) => ({ name: "bill", data: { n } })));
  }

  /** Reads the current state of the job from the server. */
  async reload({ id }: Pick<Job, "id">): Promise<Job<Bill>> {
    const found = await this.queue().getJob(id as string);
    if (found === undefined) throw new Error(`there is no job ${id}`);
    return found;
  }

  /** Acquires the lock, so that the jobs of the test find it held. */
  async takeLock(): Promise<Lease> {
    return await this.holdfast.mutex(this.key).acquire({ label: "ana's import" });
  }

  #client(maxRetriesPerRequest: number | null = 20): Redis {
    const made = new Redis({ port: this.server.port, maxRetriesPerRequest });
    this.#clients.push(made);
    return made;
  }
}

/** Resolves with the outcome of that worker's next job. */
export function ended(of: Worker<Bill>): Promise<{ job: Job<Bill> | undefined; error?: Error; value?: unknown }> {
  return new Promise((resolve) => {
    of.once("completed", (job, value) => resolve({ job, value }));
    of.once("failed", (job, error) => resolve({ job, error }));
  });
}

/** Work that runs until `end` is called. */
export function held(): { work: () => Promise<string>; began: Promise<void>; end: () => void } {
  const began = deferred<void>();
  const end = deferred<string>();
  return {
    work() {
      began.resolve();
      return end.promise;
    },
    began: began.promise,
    end: () => end.resolve("done"),
  };
}

/** Counts how many visitors are inside at the same time. */
export function crowd(): { readonly most: number; visit: (work?: () => Promise<unknown>) => Promise<void> } {
  let inside = 0;
  let most = 0;
  return {
    get most() {
      return most;
    },
    async visit(work = () => sleep(1)) {
      inside += 1;
      most = Math.max(most, inside);
      await work();
      inside -= 1;
    },
  };
}

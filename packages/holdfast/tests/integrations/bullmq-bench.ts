/** A server, two Holdfasts and queues of one's own, for the tests of `holdfast/bullmq`. */
import { randomUUID } from "node:crypto";
import { type ConnectionOptions, type Job, Queue, Worker, type WorkerOptions } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast, type Lease } from "../../src/index.js";
import { deferred, sleep } from "../../src/testing/delays.js";

/** What a job is about. */
export interface Bill {
  readonly n: number;
}

/** How long the tests wait for what has to happen. */
export const eventually = { timeout: 15_000, interval: 10 };

/** What the tests of a file stand on; new queue names and keys for each test. */
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

  /** A client that is there already, since BullMQ may stand where it sees no ioredis. */
  get connection(): ConnectionOptions {
    // BullMQ compares it with the types of an ioredis of its own.
    return this.#jobs as unknown as ConnectionOptions;
  }

  /** Is called when the test has ended, the last one first. */
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

  /** The job as the server has it now. */
  async reload({ id }: Pick<Job, "id">): Promise<Job<Bill>> {
    const found = await this.queue().getJob(id as string);
    if (found === undefined) throw new Error(`there is no job ${id}`);
    return found;
  }

  /** Somebody else has the lock. */
  async takeLock(): Promise<Lease> {
    return await this.holdfast.mutex(this.key).acquire({ label: "ana's import" });
  }

  #client(maxRetriesPerRequest: number | null = 20): Redis {
    const made = new Redis({ port: this.server.port, maxRetriesPerRequest });
    this.#clients.push(made);
    return made;
  }
}

/** How the next job of that worker ends. */
export function ended(of: Worker<Bill>): Promise<{ job: Job<Bill> | undefined; error?: Error; value?: unknown }> {
  return new Promise((resolve) => {
    of.once("completed", (job, value) => resolve({ job, value }));
    of.once("failed", (job, error) => resolve({ job, error }));
  });
}

/** Work that goes on until it is told to end. */
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

/** Counts who is inside at once. */
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

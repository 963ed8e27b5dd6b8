/** What the contract suites run on: a store, as somebody who brings one describes it. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { createHoldfast, type Holder, type Holdfast, type HoldfastOptions, type Lock } from "../index.js";
import { SHORT_MS, sleep, until } from "./delays.js";

/** One row of the registry of stores. If its server is not there its tests fail: skipped would look like green. */
export interface StoreUnderTest {
  readonly name: string;
  /** Called once for each suite. */
  start(): Promise<ServerUnderTest>;
}

/** A running server. */
export interface ServerUnderTest {
  /** Options for one more client of the server: `redis` or `store`, and what that needs. */
  connect(): Promise<HoldfastOptions>;
  /** All keys on the server, as the server knows them, whose name contains `text`. */
  keysWith(text: string): Promise<string[]>;
  /** What is left of a key's life in ms; -1 if it has no end, -2 if there is no such key. */
  pttl(key: string): Promise<number>;
  /** Writes a key as `SET key value NX PX`, like a client of another library; true if it was free. */
  setNx(key: string, value: string, leaseMs: number): Promise<boolean>;
  /** Deletes keys, as somebody else might. */
  delete(...keys: string[]): Promise<void>;
  /** Closes all clients that `connect` made, and the server if it was started for the suite. */
  stop(): Promise<void>;
}

/** What the suites ask of a lock: the verbs of every kind that is held. */
export type LockUnderTest = Pick<Lock, "name" | "acquire" | "tryAcquire" | "run" | "inspect" | "forceRelease">;

/** Makes the lock that a suite is about; every call with the same name means the same lock. */
export type MakeLock = (holdfast: Holdfast, name: string) => LockUnderTest | Promise<LockUnderTest>;

/** What is particular to a kind that can act as a mutex, and not to every mutex. */
export interface Particulars {
  /** Holders that were there before the test, such as those who have all permits but one; none without it. */
  readonly isElsewhere?: ((holder: Holder) => boolean) | undefined;
  /**
   * Keys that may be left when all is over, if they expire.
   * @default the fence
   */
  readonly remains?: RegExp | undefined;
  /**
   * Whether waiters stand in a queue that `inspect` shows, and are served in its order.
   * @default true
   */
  readonly hasQueue?: boolean | undefined;
}

/** Two clients of one server, and a name of its own for each test. */
export interface Scene {
  readonly server: ServerUnderTest;
  readonly name: string;
  /** The lock, through the first client and through the second. */
  readonly lock: LockUnderTest;
  readonly rival: LockUnderTest;
  readonly holdfast: Holdfast;
  readonly rivalHoldfast: Holdfast;
  /** Who holds the lock, without those who did before the test. */
  holders(lock?: LockUnderTest): Promise<readonly Holder[]>;
  /** Keys that may be left when all is over, if they expire. */
  readonly remains: RegExp;
  /** Resolves when so many wait; where they stand in no queue, after a while, which proves nothing. */
  queued(count: number): Promise<void>;
  /** One more client, closed after the test. */
  another(options?: Partial<HoldfastOptions>): Promise<Holdfast>;
}

/** Sets the scene for each test of the surrounding `describe`. */
export function useScene(subject: StoreUnderTest, makeLock: MakeLock, particulars: Particulars = {}): Scene {
  const { isElsewhere = () => false, remains = /:fence$/, hasQueue = true } = particulars;
  let server: ServerUnderTest;
  let clients: [Holdfast, Holdfast];
  let extra: Holdfast[] = [];
  const scene = {} as { -readonly [Key in keyof Scene]: Scene[Key] };

  beforeAll(async () => {
    server = await subject.start();
    clients = [
      createHoldfast({ ...(await server.connect()), clientName: "first" }),
      createHoldfast({ ...(await server.connect()), clientName: "second" }),
    ];
  });
  beforeEach(async () => {
    scene.server = server;
    scene.name = `contract:${randomUUID()}`;
    [scene.holdfast, scene.rivalHoldfast] = clients;
    scene.lock = await makeLock(clients[0], scene.name);
    scene.rival = await makeLock(clients[1], scene.name);
    scene.holders = async (lock = scene.lock) =>
      (await lock.inspect()).holders.filter((holder) => !isElsewhere(holder));
    scene.remains = remains;
    scene.queued = (count) =>
      hasQueue
        ? until(async () => (await scene.lock.inspect()).waiterCount === count, `${count} in the queue`)
        : sleep(SHORT_MS);
    scene.another = async (options) => {
      const holdfast = createHoldfast({ ...(await server.connect()), ...options });
      extra.push(holdfast);
      return holdfast;
    };
  });
  afterEach(async () => {
    await Promise.all(extra.map((holdfast) => holdfast.close()));
    extra = [];
  });
  afterAll(async () => {
    await Promise.all((clients ?? []).map((holdfast) => holdfast.close()));
    await server?.stop();
  });
  return scene;
}

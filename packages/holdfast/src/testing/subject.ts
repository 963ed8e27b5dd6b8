/** Describes the store that the contract suites test, and sets up the clients and locks for each test. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { createHoldfast, type Holder, type Holdfast, type HoldfastOptions, type Lock } from "../index.js";
import { SHORT_MS, sleep, until } from "./delays.js";

/** A store to test. If its server is unreachable, its tests fail, because skipped tests would look like a pass. */
export interface StoreUnderTest {
  /** Name of the store in the test titles. */
  readonly name: string;
  /** Connects to a server or starts one. Called once for each suite. */
  start(): Promise<ServerUnderTest>;
}

/** A running server. */
export interface ServerUnderTest {
  /** Returns options for another client of the server: `redis` or `store`, and any other options that it needs. */
  connect(): Promise<HoldfastOptions>;
  /** Returns all keys on the server that contain `text`, exactly as the server stores them. */
  keysWith(text: string): Promise<string[]>;
  /** Returns the time until a key expires, in ms; -1 if it does not expire, -2 if there is no such key. */
  pttl(key: string): Promise<number>;
  /** Writes a key with `SET key value NX PX`, like a client of another library. Returns whether the key was free. */
  setNx(key: string, value: string, leaseMs: number): Promise<boolean>;
  /** Deletes keys, as another client might. */
  delete(...keys: string[]): Promise<void>;
  /** Closes all clients that `connect` created, and the server if it was started for the suite. */
  stop(): Promise<void>;
}

/** The methods of a lock that the suites use. Every kind that can be held has them. */
export type LockUnderTest = Pick<Lock, "name" | "acquire" | "tryAcquire" | "run" | "inspect" | "forceRelease">;

/** Creates the lock that a suite tests. Every call with the same name must return the same lock. */
export type MakeLock = (holdfast: Holdfast, name: string) => LockUnderTest | Promise<LockUnderTest>;

/** How a kind that can act as a mutex differs from the mutex. */
export interface Particulars {
  /**
   * Returns whether a holder was there before the test, for example one that holds all permits except one. By default
   * there are no such holders.
   */
  readonly isElsewhere?: ((holder: Holder) => boolean) | undefined;
  /**
   * Keys that a test may leave behind, provided that they expire.
   * @default keys that end in `:fence`
   */
  readonly remains?: RegExp | undefined;
  /**
   * Whether waiters have a queue that `inspect` shows, and are served in its order.
   * @default true
   */
  readonly hasQueue?: boolean | undefined;
}

/** Two clients of one server, and a unique name for each test. */
export interface Scene {
  /** The server of both clients. */
  readonly server: ServerUnderTest;
  /** Name of the lock, different for each test. */
  readonly name: string;
  /** The lock, through the first client. */
  readonly lock: LockUnderTest;
  /** The same lock, through the second client. */
  readonly rival: LockUnderTest;
  /** The first client. */
  readonly holdfast: Holdfast;
  /** The second client. */
  readonly rivalHoldfast: Holdfast;
  /** Returns the holders of the lock, without those from before the test. */
  holders(lock?: LockUnderTest): Promise<readonly Holder[]>;
  /** Keys that may remain after the test, if they expire. */
  readonly remains: RegExp;
  /** Resolves when `count` waiters are queued. For a kind without a queue, waits briefly and guarantees nothing. */
  queued(count: number): Promise<void>;
  /** Creates another client, which is closed after the test. */
  another(options?: Partial<HoldfastOptions>): Promise<Holdfast>;
}

/** Creates the scene for each test of the surrounding `describe`. */
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

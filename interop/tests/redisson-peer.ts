/** Clients and threads of the Java peer with Redisson, as a test speaks of them. */
import type { Peer } from "./peer.js";

/** How a Redisson client is configured; what is left out is as Redisson has it. */
export interface RedissonSettings {
  readonly port: number;
  /** lockWatchdogTimeout; renewals come every third of it */
  readonly watchdogMs?: number;
  /** What its name mapper puts before every name. */
  readonly prefix?: string;
  /** fairLockWaitTimeout, of those versions that have it */
  readonly fairWaitMs?: number;
  /** How long it waits for an answer. */
  readonly timeoutMs?: number;
}

/** Which lock a verb is for. */
export interface JavaLock {
  readonly type?: "lock" | "fair" | "read" | "write" | "fenced" | "spin" | "nonReentrant" | "nonReentrantFair";
  readonly name: string;
}

/** One thread of a Redisson client: to Redisson, an owner of locks. */
export interface JavaThread {
  /** `<client uuid>:<thread id>`, as the server has it. */
  owner(): Promise<string>;
  call<Answer = boolean>(verb: string, values: object): Promise<Answer>;
  /** Interrupts what the thread is waiting for. */
  interrupt(): Promise<boolean>;
}

/** A Redisson client in the JVM of a peer. */
export interface JavaClient {
  thread(name: string): JavaThread;
  /** As `call` of its thread "main". */
  call<Answer = boolean>(verb: string, values: object): Promise<Answer>;
  /** Ends it without giving anything back: to the server it has crashed. */
  crash(): Promise<void>;
}

let count = 0;

/** Makes a client in the JVM of `java`, of one server. */
export function connect(java: Peer, { port, ...settings }: RedissonSettings): Promise<JavaClient> {
  return connectTo(java, { address: `redis://127.0.0.1:${port}`, ...settings });
}

/** Makes a client in the JVM of `java`. @param settings  of the verb `connect`; see interop/README.md */
export async function connectTo(java: Peer, settings: object): Promise<JavaClient> {
  count += 1;
  const client = `client ${count}`;
  await java.call("connect", { client, thread: client, ...settings });
  const thread = (name: string): JavaThread => {
    const place = { client, thread: `${client}, ${name}` };
    return {
      owner: () => java.call("owner", place),
      call: (verb, values) => java.call(verb, { ...place, ...values }),
      interrupt: () => java.call("interrupt", place),
    };
  };
  return {
    thread,
    call: (verb, values) => thread("main").call(verb, values),
    async crash() {
      await java.call("shutdown", { client, thread: client });
    },
  };
}

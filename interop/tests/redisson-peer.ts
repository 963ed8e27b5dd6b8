/** Clients and threads of the Java peer with Redisson, for tests. */
import type { Peer } from "./peer.js";

/** The configuration of a Redisson client; omitted settings keep Redisson's defaults. */
export interface RedissonSettings {
  readonly port: number;
  /** lockWatchdogTimeout; renewals happen every third of it. */
  readonly watchdogMs?: number;
  /** The prefix that its name mapper adds to every name. */
  readonly prefix?: string;
  /** fairLockWaitTimeout, for versions that have it. */
  readonly fairWaitMs?: number;
  /** The client's timeout for replies. */
  readonly timeoutMs?: number;
}

/** The lock that a verb refers to. */
export interface JavaLock {
  readonly type?: "lock" | "fair" | "read" | "write" | "fenced" | "spin" | "nonReentrant" | "nonReentrantFair";
  readonly name: string;
}

/** A thread of a Redisson client, which Redisson treats as an owner of locks. */
export interface JavaThread {
  /** `<client uuid>:<thread id>`, as stored on the server. */
  owner(): Promise<string>;
  call<Answer = boolean>(verb: string, values: object): Promise<Answer>;
  /** Interrupts the thread's current wait. */
  interrupt(): Promise<boolean>;
}

/** A Redisson client in the JVM of a peer. */
export interface JavaClient {
  thread(name: string): JavaThread;
  /** Same as `call` of its thread "main". */
  call<Answer = boolean>(verb: string, values: object): Promise<Answer>;
  /** Ends the client without releasing anything. To the server, it has crashed. */
  crash(): Promise<void>;
}

let count = 0;

/** Creates a client for one server in the JVM of `java`. */
export function connect(java: Peer, { port, ...settings }: RedissonSettings): Promise<JavaClient> {
  return connectTo(java, { address: `redis://127.0.0.1:${port}`, ...settings });
}

/** Creates a client in the JVM of `java`. @param settings  settings of the verb `connect`; see interop/README.md */
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

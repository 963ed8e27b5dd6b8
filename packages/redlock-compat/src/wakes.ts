/**
 * Wakes waiters when a lock is released, so that they do not sleep until their next attempt.
 *
 * A release publishes on the channel of each resource. Only instances of this package publish. Waiters notice a release
 * by an original instance at their next regular attempt. If several waiters in this process want the same resources, a
 * message wakes the one that has waited longest. All of this is best effort: without a subscription, waiters poll as in
 * the original.
 */
import { storeFor } from "holdfast/internal";
import { quorumOf } from "./ballot.js";
import { after } from "./time.js";
import type { Client } from "./votes.js";

/** Longest wait for a subscription, in ms. */
const SUBSCRIBE_MS = 5_000;

interface Subscription {
  close(): Promise<void>;
}

interface Channel {
  readonly waiters: Set<Waiter>;
  /** The value of the lock that was released last, according to the messages. */
  value: string;
  /** The servers that have announced its release. */
  readonly heard: Set<Client>;
  readonly subscriptions: Promise<Subscription | undefined>[];
}

/** One store for each client, which all instances share. It is closed when the owner has closed the client. */
const stores = new WeakMap<Client, ReturnType<typeof storeFor>>();
/** All wakes, by the first client of their set, so that instances for the same servers share their waiters. */
const shared = new WeakMap<Client, Wakes[]>();

/** Returns the wakes that all instances on these servers share. */
export function wakesOf(clients: ReadonlySet<Client>): Wakes {
  const [first] = clients as ReadonlySet<Client> & Iterable<Client>;
  if (first === undefined) throw new Error("no clients");
  const known = shared.get(first) ?? [];
  shared.set(first, known);
  const found = known.find((wakes) => wakes.isFor(clients));
  if (found !== undefined) return found;
  const wakes = new Wakes(clients);
  known.push(wakes);
  return wakes;
}

/** Waiters for locks on one set of servers. Each channel is subscribed to only while it has waiters. */
export class Wakes {
  readonly #clients: ReadonlySet<Client>;
  readonly #quorum: number;
  readonly #channels = new Map<string, Channel>();

  constructor(clients: ReadonlySet<Client>) {
    this.#clients = new Set(clients);
    this.#quorum = quorumOf(clients);
  }

  isFor(clients: ReadonlySet<Client>): boolean {
    return clients.size === this.#clients.size && [...clients].every((client) => this.#clients.has(client));
  }

  /** Adds a waiter for locks on these channels. It is woken once when its subscriptions are in place. */
  join(names: readonly string[]): Waiter {
    const waiter = new Waiter(names.join(" "), () => this.#leave(names, waiter));
    for (const name of names) {
      const channel = this.#channels.get(name) ?? this.#open(name);
      channel.waiters.add(waiter);
      // The lock may have been released before the subscription began, so wake the waiter to try again.
      void Promise.all(channel.subscriptions).then((all) => {
        if (all.filter((one) => one !== undefined).length >= this.#quorum) waiter.wake();
      });
    }
    return waiter;
  }

  #open(name: string): Channel {
    const subscriptions = [...this.#clients].map((client) => this.#subscribe(client, name));
    const channel: Channel = { waiters: new Set(), value: "", heard: new Set(), subscriptions };
    this.#channels.set(name, channel);
    return channel;
  }

  /** Returns undefined if the client cannot subscribe. */
  async #subscribe(client: Client, name: string): Promise<Subscription | undefined> {
    try {
      return await openStore(client)?.inbox(name, (value) => this.#hear(name, client, value), SUBSCRIBE_MS);
    } catch {
      return undefined;
    }
  }

  /** A lock on several servers is free when a majority of them has released it. */
  #hear(name: string, client: Client, value: string): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    if (channel.value !== value) channel.heard.clear();
    channel.value = value;
    channel.heard.add(client);
    if (channel.heard.size !== this.#quorum) return;
    const woken = new Set<string>();
    for (const waiter of channel.waiters) {
      if (woken.has(waiter.resources)) continue;
      woken.add(waiter.resources);
      waiter.wake();
    }
  }

  #leave(names: readonly string[], waiter: Waiter): void {
    for (const name of names) {
      const channel = this.#channels.get(name);
      if (channel === undefined || !channel.waiters.delete(waiter) || channel.waiters.size > 0) continue;
      this.#channels.delete(name);
      for (const opening of channel.subscriptions) void opening.then((subscription) => subscription?.close());
    }
  }
}

/** A caller of `acquire` between two attempts. */
export class Waiter {
  /** Identifies the set of resources. */
  readonly resources: string;
  /** Ends the wait. Call it once. */
  readonly leave: () => void;
  #isWoken = false;
  #end: (() => void) | undefined;

  constructor(resources: string, leave: () => void) {
    this.resources = resources;
    this.leave = leave;
  }

  /** Ends the current sleep or, if the waiter is not asleep, the next. */
  wake(): void {
    this.#isWoken = true;
    this.#end?.();
  }

  /** Resolves to false after `ms`, or to true as soon as the waiter is woken. */
  async sleep(ms: number): Promise<boolean> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        const cancel = after(ms, resolve);
        this.#end = () => {
          cancel();
          resolve();
        };
      });
      this.#end = undefined;
    }
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    return isWoken;
  }
}

/** Returns undefined for a closed client, and for an object that is not a real client, such as a mock. */
function openStore(client: Client): ReturnType<typeof storeFor> | undefined {
  const known = stores.get(client);
  if (known !== undefined || client.status === "end") return known;
  const store = storeFor(client);
  stores.set(client, store);
  client.once("end", () => {
    stores.delete(client);
    void store.close();
  });
  return store;
}

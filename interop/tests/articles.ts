/** The peers of articles A to D behind one interface, so that each test runs with all of them. */
import { cppGetSet, type DeadlineDialect, javaGetSet, phpLua, phpSetGet } from "@holdfast/interop/timestamp";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";
import type { Contender } from "./contention.js";
import { type ClockedSettings, type Peer, startArticleA, startArticleB, startArticleD } from "./peer.js";

/** A client with the lock of one article. */
export interface ArticleClient {
  /** One attempt to acquire, whatever the article calls it. */
  tryLock(name: string): Promise<boolean>;
  unlock(name: string): Promise<boolean>;
  contend(name: string, counter: string, forMs: number): Promise<Contender>;
  /** Ends the client like a crash, without releasing anything. */
  crash(): Promise<unknown>;
}

/** One article. */
export interface Article {
  readonly title: string;
  readonly dialect: DeadlineDialect;
  /** Whether its unlock frees the lock. The unlock of article B does nothing before the lock has expired. */
  readonly frees: boolean;
  /** The command that takes over an expired lock; undefined if that is part of the acquire step. */
  readonly takeover: RegExp | undefined;
  /** @param java  the JVM of article C, which all of its clients share */
  start(settings: ClockedSettings, java: Peer): Promise<ArticleClient>;
}

/** Retries until the lock is acquired. The current holder must release it soon. */
export async function lockAtLast(client: ArticleClient, name: string): Promise<void> {
  while (!(await client.tryLock(name))) await sleep(20);
}

/** The four articles. */
export const ARTICLES: readonly Article[] = [
  {
    title: "article A in PHP",
    dialect: phpSetGet,
    frees: true,
    takeover: /^SET .* GET$/,
    start: async (settings) => simple(startArticleA(settings)),
  },
  {
    title: "article B in PHP",
    dialect: phpLua,
    frees: false,
    takeover: undefined,
    async start(settings) {
      const peer = startArticleB(settings);
      return {
        ...simple(peer),
        tryLock: async (name) => (await peer.call<{ isHeld: boolean }>("lock", { name })).isHeld,
      };
    },
  },
  {
    title: "article C in Java",
    dialect: javaGetSet,
    frees: true,
    takeover: /^GETSET/,
    start: async (settings, java) => new JavaObjects(java, settings),
  },
  {
    title: "article D in C++",
    dialect: cppGetSet,
    frees: true,
    takeover: /^GETSET/,
    start: async (settings) => simple(startArticleD(settings)),
  },
];

function simple(peer: Peer): ArticleClient {
  return {
    tryLock: (name) => peer.call("tryLock", { name }),
    unlock: (name) => peer.call("unlock", { name }),
    contend: (name, counter, forMs) => peer.call("contend", { name, counter, forMs }),
    crash: () => peer.kill(),
  };
}

let count = 0;

/** Lock objects of article C, one per name. */
class JavaObjects implements ArticleClient {
  readonly #java: Peer;
  readonly #settings: ClockedSettings;
  readonly #objects = new Map<string, Promise<string>>();

  constructor(java: Peer, settings: ClockedSettings) {
    this.#java = java;
    this.#settings = settings;
  }

  async tryLock(name: string): Promise<boolean> {
    return this.#call("lock", name);
  }

  async unlock(name: string): Promise<boolean> {
    return this.#call("unlock", name);
  }

  async contend(name: string, counter: string, forMs: number): Promise<Contender> {
    return this.#call("contend", name, { counter, forMs, port: this.#settings.port });
  }

  /** Simulates a crash by never using the object again: it has no thread that renews. */
  async crash(): Promise<void> {
    this.#objects.clear();
  }

  async #call<Answer>(verb: string, name: string, values: object = {}): Promise<Answer> {
    const known = this.#objects.get(name) ?? this.#create(name);
    this.#objects.set(name, known);
    const lock = await known;
    return this.#java.call(verb, { lock, thread: lock, ...values });
  }

  async #create(name: string): Promise<string> {
    count += 1;
    const lock = `shared object ${count}`;
    await this.#java.call("create", { lock, name, waitMs: 0, ...this.#settings });
    return lock;
  }
}

/** The peers of the four articles in the same words, so that each test is played with all of them. */
import { cppGetSet, type DeadlineDialect, javaGetSet, phpLua, phpSetGet } from "@holdfast/interop/timestamp";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";
import type { Contender } from "./contention.js";
import { type ClockedSettings, type Peer, startArticleA, startArticleB, startArticleD } from "./peer.js";

/** A client with the lock of one article. */
export interface ArticleClient {
  /** One try, whatever the article calls it. */
  tryLock(name: string): Promise<boolean>;
  unlock(name: string): Promise<boolean>;
  contend(name: string, counter: string, forMs: number): Promise<Contender>;
  /** Ends it, as a crash does: nothing is given back. */
  crash(): Promise<unknown>;
}

/** One article. */
export interface Article {
  readonly title: string;
  readonly dialect: DeadlineDialect;
  /** Whether its unlock frees the lock. That of article B does not, before the lock is over anyway. */
  readonly frees: boolean;
  /** The command with which it takes over what has expired; undefined if that is one step with the rest. */
  readonly takeover: RegExp | undefined;
  /** @param java  the JVM of article C, which all of its clients share */
  start(settings: ClockedSettings, java: Peer): Promise<ArticleClient>;
}

/** Asks until it is granted. Whoever holds it lets go before long. */
export async function lockAtLast(client: ArticleClient, name: string): Promise<void> {
  while (!(await client.tryLock(name))) await sleep(20);
}

/** All four. */
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

/** Lock objects of article C, one for each name. */
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

  /** It has no thread that renews anything, so one that is never used again is as good as dead. */
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

import type { Mutex } from "async-mutex";
import type { Adapter } from "./adapter.js";

/** async-mutex: a lock within one process. It shows what a pair costs without a server. */
export const asyncMutex: Adapter = {
  name: "async-mutex",
  role: "local",
  package: "async-mutex",
  client: "no client",
  settings: "a Mutex for each name; excludes only within one process",
  onlyFree: "it excludes only within one process",
  async open() {
    const library = await import("async-mutex");
    const mutexes = new Map<string, Mutex>();
    return {
      async acquire(name) {
        const mutex = mutexes.get(name) ?? new library.Mutex();
        mutexes.set(name, mutex);
        const release = await mutex.acquire();
        return { release: async () => release() };
      },
      async close() {},
    };
  },
};

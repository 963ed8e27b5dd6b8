/** Mistakes in the use of the caller's client, the server and the process. */
import { patch, type Tooth, test } from "../tooth.js";

/** Teeth for the use of clients. */
export const CLIENTS: readonly Tooth[] = [
  {
    id: "keys-without-a-tag",
    bugs: ["B60"],
    mistake: "the keys of one lock are in different slots",
    patches: [
      patch(
        "core/keys.ts",
        "const base = `${prefix}:${kind}:{${escaped}}`;",
        "const base = `${prefix}:${kind}:${escaped}`;",
      ),
    ],
    catcher: test("unit/names.test.ts", "share the hash slot of the tag for any name"),
  },
  {
    id: "script-selects-a-database",
    bugs: ["B61"],
    mistake: "a script selects a different database",
    patches: [
      patch(
        "mutex/acquire.lua",
        "if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4], KEYS[5]) == 0 then",
        "redis.call('SELECT', 0)\nif redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4], KEYS[5]) == 0 then",
      ),
    ],
    catcher: test(
      "regressions/database-of-the-caller.test.ts",
      "a lock is kept only in the database that the caller chose",
    ),
  },
  {
    id: "commands-on-the-client",
    bugs: ["B61"],
    mistake: "a command with a fixed name is defined on the caller's client",
    patches: [
      patch(
        "stores/ioredis.ts",
        "  lossesOf.set(redis, losses);\n",
        "  lossesOf.set(redis, losses);\n  Object.assign(redis, { release: () => {} });\n",
      ),
    ],
    catcher: test("stores/contract.test.ts", "ioredis 6 a store defines no property on the caller's client"),
  },
  {
    id: "free-on-error",
    bugs: ["B63"],
    mistake: "a caller that asks while the server is down is told that the lock is free",
    patches: [
      patch(
        "core/inspection.ts",
        "return describe(session, protocol, await protocol.inspect(undefined, session.commandTimeoutMs));",
        "const nobody = { holders: [], token: undefined, waiterCount: 0, waiters: [], ahead: undefined };\n  return describe(session, protocol, await protocol.inspect(undefined, session.commandTimeoutMs).catch(() => nobody));",
      ),
    ],
    catcher: test(
      "peer-bugs/a-acquire.test.ts",
      "A17: inspect rejects when the server is down, and never reports the lock as free",
    ),
  },
  {
    id: "timers-keep-the-process",
    bugs: ["B65"],
    mistake: "timers keep an idle process alive",
    patches: [patch("core/runtime.ts", "    if (!this.#keepAlive) timeout.unref();\n", "")],
    catcher: test("unit/runtime.test.ts", "a timer keeps the process alive only if requested, however long it is"),
  },
  {
    id: "closes-the-callers-client",
    bugs: ["B65"],
    mistake: "close() closes the client that the caller owns",
    patches: [
      patch(
        "stores/ioredis.ts",
        'return clientStore({\n    kind: "ioredis",\n    client,\n    inboxes: overSubscriber(redis, openSubscriber, openIoredisSubscriber(redis)),\n    watch: sharedWatch(redis, watch),\n    conditions,\n    server: () => ioredisServer(redis),\n    clientTimeouts: () => ioredisTimeouts(redis.options),\n  });',
        'const store = clientStore({\n    kind: "ioredis",\n    client,\n    inboxes: overSubscriber(redis, openSubscriber, openIoredisSubscriber(redis)),\n    watch: sharedWatch(redis, watch),\n    conditions,\n    server: () => ioredisServer(redis),\n  });\n  return { ...store, close: () => store.close().then(() => redis.disconnect()) };',
      ),
    ],
    catcher: test(
      "stores/contract.test.ts",
      "ioredis 6 close() ends only what the store opened, and leaves no listener on the caller's client",
    ),
  },
  {
    id: "unknown-script-is-a-failure",
    bugs: [],
    mistake: "scripts that a server has forgotten are not loaded again",
    patches: [
      patch(
        "stores/script-runner.ts",
        "if (this.#loads < LOADS_MAX && isUnknownScript(cause)) {",
        "if (this.#loads < 0 && isUnknownScript(cause)) {",
      ),
    ],
    catcher: test(
      "stores/contract.test.ts",
      "ioredis 6 a script missing on the server is loaded, and later calls send one command",
    ),
  },
];

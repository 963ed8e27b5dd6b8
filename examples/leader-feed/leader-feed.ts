/**
 * One elected process at a time pulls a feed, and others are ready to take over. Two leaders are killed. After each,
 * the next leader continues where it stopped, so that no item is missing or stored twice. An observer sees every
 * leader.
 *
 *     npm run build && node examples/dist/leader-feed/leader-feed.js
 *
 * With REDIS_URL, the pullers are processes that use this server, and the leader is killed with SIGKILL. Without it,
 * they run in this process, and the leader only stops renewing its lease, which looks like a crash to the others.
 */
import { strict as assert } from "node:assert";
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type HoldfastOptions, type Leader, type Store } from "holdfast";
import { Redis } from "ioredis";
import { Archive } from "./archive.js";
import { pull, type Question } from "./puller.js";

const LENGTH = 60;
const NAMES = ["puller 1", "puller 2", "puller 3", "puller 4"];
const url = process.env.REDIS_URL;
const name = `feed ${randomUUID()}`;
const keyspace = new Keyspace();
const archive = new Archive();

/** A puller that can be killed. `ended` resolves when it has finished. */
interface Puller {
  kill(): void;
  readonly ended: Promise<unknown>;
}

function startProcess(puller: string): Puller {
  const child: ChildProcess = fork(fileURLToPath(new URL("./puller.js", import.meta.url)), [
    url ?? "",
    name,
    puller,
    `${LENGTH}`,
  ]);
  child.on("message", ({ ask, item = 0, term = 0 }: Question) => {
    const answer = ask === "position" ? archive.position : archive.add(item, term);
    // If the child was killed in the meantime, it needs no reply.
    if (child.connected) child.send(answer, () => {});
  });
  return { kill: () => void child.kill("SIGKILL"), ended: once(child, "exit") };
}

function startHere(puller: string): Puller {
  const store = embedded({ keyspace });
  let isDead = false;
  const never = new Promise<never>(() => {});
  // Like a dead process, this store sends nothing to the server and returns no replies after `kill`.
  const mortal: Store = {
    ...methodsOf(store),
    run: (...call) => (isDead ? never : store.run(...call)),
  };
  const holdfast = createHoldfast({ store: mortal, clientName: puller });
  const remote = {
    position: async () => archive.position,
    add: async (item: number, term: number) => (isDead ? never : archive.add(item, term)),
  };
  return {
    kill() {
      isDead = true;
      void store.close();
    },
    ended: pull(holdfast.election(name), puller, remote, LENGTH).then(() => holdfast.close()),
  };
}

function methodsOf(store: Store): Store {
  return {
    kind: store.kind,
    run: (...call) => store.run(...call),
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

const pullers = new Map(NAMES.map((each) => [each, (url === undefined ? startHere : startProcess)(each)]));
const redis = url === undefined ? undefined : new Redis(url);
const options: HoldfastOptions = redis === undefined ? { store: embedded({ keyspace }) } : { redis };
const observer = createHoldfast(options);
const leaders: Leader[] = [];
const done = new AbortController();
const following = (async () => {
  for await (const leader of observer.election(name).observe({ signal: done.signal })) {
    if (leader !== null) leaders.push(leader);
  }
})().catch((reason: unknown) => {
  if (!done.signal.aborted) throw reason;
});

// Kill the leader after a third of the items, and the next leader after two thirds.
const dead: { readonly puller: string; readonly at: number }[] = [];
for (const third of [1, 2]) {
  while (archive.position < (third * LENGTH) / 3) await pause(1);
  const puller = leaders.at(-1)?.value ?? "";
  pullers.get(puller)?.kill();
  dead.push({ puller, at: archive.position });
}
const isDead = (puller: string): boolean => dead.some((each) => each.puller === puller);
await Promise.all([...pullers].filter(([puller]) => !isDead(puller)).map(([, { ended }]) => ended));
done.abort();
await following;

assert.deepEqual(
  archive.items.map(({ item }) => item),
  Array.from({ length: LENGTH }, (_, i) => i),
);
const terms = archive.items.map(({ term }) => term);
assert.deepEqual(
  terms.toSorted((a, b) => a - b),
  terms,
);
assert.ok(new Set(terms).size > dead.length, "others have gone on");
// If the machine stalls for longer than a lease, the leader can change before it is killed.
for (const { puller } of dead) assert.ok(leaders.some(({ value }) => value === puller));
const [first, last] = [leaders[0], leaders.at(-1)];
assert.ok(first !== undefined && last !== undefined && last.term > first.term && !isDead(last.value));
assert.ok(last.transitions >= dead.length, "each new term is counted");
process.stdout.write(
  `leader-feed: ${archive.items.length} items, each once; ${dead.map(({ puller, at }) => `${puller} died after ${at}`).join(", ")}, and others continued\n`,
);
await observer.close();
redis?.disconnect();

/**
 * A feed that one process at a time may pull, with others ready to take over. Two leaders are killed on the way: the next
 * candidate goes on where each has stopped, nothing is missing and nothing is there twice, and whoever follows the election
 * has seen them all.
 *
 *     npm run build && node examples/dist/leader-feed/leader-feed.js
 *
 * On the server that REDIS_URL names the pullers are processes and the leader is killed with SIGKILL. Without one they
 * run in this process, and the leader just stops to renew its lease, which is all that others see of a death.
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

/** A puller that can be killed; `ended` resolves when it has no more to do. */
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
    // It may have been killed meanwhile; then nobody waits for the answer.
    if (child.connected) child.send(answer, () => {});
  });
  return { kill: () => void child.kill("SIGKILL"), ended: once(child, "exit") };
}

function startHere(puller: string): Puller {
  const store = embedded({ keyspace });
  let isDead = false;
  const never = new Promise<never>(() => {});
  // Of a dead process nothing reaches the server any more, and nobody hears what it is told.
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

// A third of the way the leader dies, and so does the one after it.
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
// On a machine that stands still for longer than a lease somebody else leads before anybody dies.
for (const { puller } of dead) assert.ok(leaders.some(({ value }) => value === puller));
const [first, last] = [leaders[0], leaders.at(-1)];
assert.ok(first !== undefined && last !== undefined && last.term > first.term && !isDead(last.value));
assert.ok(last.transitions >= dead.length, "each new term is counted");
process.stdout.write(
  `leader-feed: ${archive.items.length} items, each once; ${dead.map(({ puller, at }) => `${puller} died after ${at}`).join(", ")}, and others went on\n`,
);
await observer.close();
redis?.disconnect();

/** The election scripts that differ from a mutex's. Only the term shows to which grant a late request belongs. */
import { expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import { electionLeader, electionProclaim, electionResign, mutexAcquire } from "../../src/generated/scripts.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const LOCK = "hf:election:{t}";
const KEYS: Readonly<Record<string, string>> = {
  lock: LOCK,
  fence: `${LOCK}:fence`,
  queue: `${LOCK}:queue`,
  handed: `${LOCK}:handed`,
  record: `${LOCK}:value`,
};
/** Clients A and B are subscribed to their inboxes. */
const A = "A/1/30000/1";
const B = "B/2/30000/1";

function send(script: Script, args: Readonly<Record<string, string | number>>): Promise<unknown> {
  const given = {
    inbox: INBOX,
    channel: `${LOCK}:leader`,
    leaseMs: 30_000,
    fenceMs: 630_000,
    block: 1,
    enqueue: 1,
    ...args,
  };
  return server.redis.eval(
    script.source,
    script.keys.length,
    ...script.keys.map((key) => KEYS[key] ?? ""),
    ...script.args.map((name) => String((given as Record<string, string | number>)[name])),
  );
}

test("resigning an ended term is refused, even if a late copy of its request was granted since", async () => {
  const term = Number(await send(mutexAcquire, { owner: A }));
  // A was force-released without being notified. Then B leads and resigns.
  await server.redis.del(LOCK);
  const between = Number(await send(mutexAcquire, { owner: B }));
  expect(await send(electionResign, { owner: B, term: between })).toBe(1);
  const again = Number(await send(mutexAcquire, { owner: A }));
  expect(again).toBeGreaterThan(between);
  expect(await send(electionResign, { owner: A, term })).toBe(3);
  expect(await server.redis.get(LOCK)).toBe(A);
  expect(await send(electionProclaim, { owner: A, term, value: "old", number: 1 })).toBe(3);
  expect(await send(electionLeader, {})).toEqual([0]);
  expect(await send(electionResign, { owner: A, term: again })).toBe(1);
  expect(await server.redis.exists(LOCK)).toBe(0);
});

test("resigning works on a server that has lost only the last term, and the next candidate leads", async () => {
  const term = Number(await send(mutexAcquire, { owner: A }));
  expect(await send(mutexAcquire, { owner: B })).toEqual([0, expect.any(Number), expect.any(Number)]);
  await server.redis.del(`${LOCK}:fence`);
  expect(await send(electionResign, { owner: A, term })).toBe(1);
  expect(await server.redis.get(LOCK)).toBe(B);
});

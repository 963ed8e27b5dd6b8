import { LockError } from "holdfast";
import { call, claimOf, optionsOf } from "../calling.js";
import { release, releasesOf } from "../holding.js";
import { holdProgram, leaseProgram } from "../lease-program.js";
import { lockOf } from "../lock-of.js";
import type { Kind, Scene } from "../scene.js";
import { exclusive } from "./mutex.js";
import { accountOf } from "./signal-account.js";

/** Longest wait for a signal that may never come. */
const WAIT_MS = 6_000;

/** A condition of a mutex: half of the callers wait for a signal, the others signal one waiter or all. */
export const condition: Kind = {
  name: "condition",
  patienceMs: WAIT_MS,
  ran(world, _, call, outcome, reply) {
    const account = accountOf(world);
    if (call.script.name === "condition/signal" && outcome === "signalled")
      account.signalled(call, lockOf(call), reply);
    if (call.script.name === "condition/leave") account.left(call, lockOf(call), outcome);
    account.ran(call);
  },
  finish: (world) => accountOf(world).finish(),
  run: (scene) => (scene.session.amount % 2 === 0 ? waiter(scene) : signaller(scene)),
};

async function waiter(scene: Scene): Promise<void> {
  const { judge, session, lockName, member } = scene;
  const mutex = member.holdfast.mutex(lockName);
  const options = { ...optionsOf(scene), waitMs: Math.min(session.waitMs, WAIT_MS) };
  const held = await call(
    scene,
    (signal) => mutex.acquire({ ...options, ...(signal && { signal }) }),
    options.waitMs,
    claimOf(scene),
  );
  if (held === undefined) return;
  const [view] = [judge.granted(held.attempt, held.lease, lockName, 1, 1, held.lease)];
  await member.process.sleep(1);
  if (held.lease.validForMs() <= 0) {
    await release(scene, held.lease, [view]);
    return;
  }
  const again = await call(
    scene,
    async (signal) => {
      judge.leases.over(view);
      // It releases the mutex and requests it again. The time of the release is not reported.
      releasesOf(scene, [view]);
      try {
        return await mutex.condition("changed").wait(held.lease, { ...options, ...(signal && { signal }) });
      } catch (error) {
        // If the inbox cannot be opened, the lease is unchanged.
        if (held.lease.validForMs() > 0) void held.lease.release().catch(() => {});
        throw error;
      }
    },
    options.waitMs,
    claimOf(scene),
  );
  if (again === undefined) return;
  accountOf(scene.world).returned(again.lease.owner, again.attempt.callMs);
  const next = judge.granted(again.attempt, again.lease, lockName, 1, 1, again.lease);
  await holdProgram(scene, again.lease, [next], exclusive(mutex, lockName));
}

function signaller(scene: Scene): Promise<void> {
  const { lockName, session, member } = scene;
  const mutex = member.holdfast.mutex(lockName);
  const changed = mutex.condition("changed");
  return leaseProgram(scene, {
    ...exclusive(mutex, lockName),
    async meanwhile(lease) {
      try {
        if (session.amount === 1) await changed.signal(lease);
        else await changed.signalAll(lease);
      } catch (error) {
        if (!(error instanceof LockError)) throw error;
      }
    },
  });
}

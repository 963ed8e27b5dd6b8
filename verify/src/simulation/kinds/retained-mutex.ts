/** The mutex with `retain`: how soon a claim that no caller uses is given to another process. */
import { retain } from "holdfast/retain";
import { leaseProgram } from "../lease-program.js";
import type { Joined } from "../member.js";
import type { Call } from "../network.js";
import { isRetainable } from "../owners.js";
import type { SimulatedProcess } from "../process.js";
import type { Kind, Scene } from "../scene.js";
import { FAIR } from "../weather.js";
import type { World } from "../world.js";
import { exclusive } from "./mutex.js";

/** More than the time that a reply, a message and a request take together without faults. */
const RECALLED_MS = 3 * FAIR.slowMs + 1;
/** More than the drift between any two clocks. */
const DRIFT = 1.02;

/** Whether all leases of an owner end with a release. The server keeps the others for longer than their process does. */
const released = new WeakMap<World, Map<string, boolean>>();

/** Retained for a third of its lease, the maximum. A process of protocol 0 does not know the option. */
function retained(scene: Scene): ReturnType<typeof exclusive> {
  const { member, world, session, lockName } = scene;
  const isOld = world.members.indexOf(member) === world.setup.oldProcess;
  const options = isOld ? undefined : { retain: retain({ forMs: Math.floor(session.leaseMs / 3) }) };
  const lock = exclusive(member.holdfast.mutex(lockName, options), lockName);
  const noted = <Held extends { readonly owner: string } | null>(lease: Held): Held => {
    if (lease === null) return lease;
    const owners = released.get(world) ?? new Map<string, boolean>();
    const isReleased = session.end === "release" && owners.get(lease.owner) !== false;
    released.set(world, owners.set(lease.owner, isReleased));
    return lease;
  };
  // No forced releases: the next lease of a retained claim may begin before the message arrives, see docs/adr/146.
  const { forceRelease: _, ...others } = lock;
  return {
    ...others,
    acquire: async (given) => noted(await lock.acquire(given)),
    tryAcquire: async (given) => noted(await lock.tryAcquire(given)),
  };
}

function holderOf(world: World, key: string): { readonly owner: string; readonly leftMs: number } | undefined {
  const entry = world.keyspace.dump().find((each) => each.key === key);
  return typeof entry?.value === "string" ? { owner: entry.value, leftMs: entry.leftMs } : undefined;
}

/** Whether the server's holder is a claim that no caller of its process uses. */
function isUnused(world: World, key: string, owner: string, member: Joined): boolean {
  const holder = holderOf(world, key);
  // The lease on the server lasts a little longer than its holder relies on it.
  if (holder?.owner !== owner || holder.leftMs < Number(owner.split("/")[2]) * 0.4) return false;
  if (released.get(world)?.get(owner) !== true) return false;
  let isHeld = false;
  member.process.enter(() => {
    isHeld = member.holdfast.held().some((lease) => lease.owner === owner);
  });
  return !isHeld;
}

/** L1: when another claim has asked for the lock, an unused claim is released after one message and one request. */
function watchRecall(world: World, process: SimulatedProcess, call: Call): void {
  const [key = ""] = call.keys;
  const owner = holderOf(world, key)?.owner ?? "";
  const member = world.members.find(({ process: { name, incarnation } }) =>
    owner.startsWith(`${name}-${incarnation}-`),
  );
  if (member === undefined || !isRetainable(owner)) return;
  // Processes of protocol 0 send no recall. For them the time of the retention is the limit.
  const isRecalled = !world.oldScripts.has(call.script);
  // If a caller still uses the claim, the retention has not begun, so the time of its end is not known.
  if (!isRecalled && !isUnused(world, key, owner, member)) return;
  const withinMs = RECALLED_MS + (isRecalled ? 0 : (Number(owner.split("/")[2]) / 3) * DRIFT);
  world.plan(world.nowMs + withinMs, "look for a claim that is retained", () => {
    if (!isUnused(world, key, owner, member)) return;
    world.plan(world.nowMs + RECALLED_MS, "look for it again", () => {
      if (isUnused(world, key, owner, member))
        world.judge.violated("L1", `${process.name} asked for ${key}, but ${owner}, which is unused, still has it`);
    });
  });
  if (isUnused(world, key, owner, member)) world.judge.decided("recalls of unused claims");
}

/** A mutex that is retained after its release. */
export const retainedMutex: Kind = {
  name: "retained-mutex",
  run: (scene) => leaseProgram(scene, retained(scene)),
  ran(world, process, call, outcome) {
    const isRefused = call.script.name === "mutex/acquire" && (outcome === "waiting" || outcome === "refused");
    if (isRefused && world.setup.profile === "none" && world.setup.faults.length === 0)
      watchRecall(world, process, call);
  },
};

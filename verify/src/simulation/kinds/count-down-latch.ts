import { type CountDownLatch, LockError, StoreError } from "holdfast";
import type { Arguments, Verb } from "../../history/index.js";
import { call } from "../calling.js";
import type { Draft } from "../draft.js";
import { lockOf } from "../lock-of.js";
import type { Call } from "../network.js";
import { membersOf } from "../observer.js";
import { labelIn } from "../owners.js";
import type { SimulatedProcess } from "../process.js";
import type { Kind, Scene } from "../scene.js";
import type { World } from "../world.js";
import { toldByMs } from "./told.js";

/** What the judge of a latch must know besides the results of the callers. */
interface Sent {
  /** Requests that have run. */
  readonly requests: Set<string>;
  /** When a resent request ran a second time. */
  readonly again: { readonly process: SimulatedProcess; readonly atMs: number }[];
  /** Sessions that wait on the server, with the start of their wait. */
  readonly waiting: Map<string, number>;
  /** When the count of a latch reached zero on the server. */
  readonly opened: { readonly lockName: string; readonly atMs: number }[];
  readonly waits: Wait[];
}

/** One call of `await`. */
interface Wait {
  readonly process: SimulatedProcess;
  readonly label: string;
  readonly lockName: string;
  readonly callMs: number;
  /** Infinity if it never returned because its process was killed. */
  returnMs: number;
}

const sentIn = new WeakMap<World, Sent>();

function sentOf(world: World): Sent {
  const sent = sentIn.get(world) ?? {
    requests: new Set(),
    again: [],
    waiting: new Map(),
    opened: [],
    waits: [],
  };
  sentIn.set(world, sent);
  return sent;
}

const PATIENCE_MS = 8_000;

/** A latch that one caller in four sets, two count down, and one waits for. */
export const countDownLatch: Kind = {
  name: "count-down-latch",
  patienceMs: PATIENCE_MS,

  ran(world, process, call, outcome) {
    const { script, args } = call;
    const sent = sentOf(world);
    if (outcome === "waiting") {
      const label = labelIn(String(args[script.args.indexOf("owner")]));
      if (!sent.waiting.has(label)) sent.waiting.set(label, world.nowMs);
    }
    if (script.name !== "count-down-latch/count-down") return;
    if (hasOpened(world, call)) sent.opened.push({ lockName: lockOf(call), atMs: world.nowMs });
    const request = String(args[script.args.indexOf("request")]);
    if (sent.requests.has(request)) sent.again.push({ process, atMs: world.nowMs });
    sent.requests.add(request);
  },

  async run(scene) {
    const { lockName, session, member, world } = scene;
    const latch = member.holdfast.countDownLatch(lockName);
    if (session.amount === 4) {
      await wait(scene, latch);
      return;
    }
    // Counting has no claim, and no deadline except that of its requests.
    await call(scene, () => (session.amount === 1 ? setCount(scene, latch) : countDown(scene, latch)), 0);
    world.judge.lastEndMs = world.nowMs;
  },

  finish(world) {
    const { judge } = world;
    // A server that has forgotten does not know the waiters.
    if (judge.lostAt("exclusion") < Number.POSITIVE_INFINITY) return;
    const { opened, waits, waiting } = sentOf(world);
    for (const { lockName, atMs } of opened)
      for (const wait of waits) {
        const sinceMs = waiting.get(wait.label) ?? Number.POSITIVE_INFINITY;
        // A stopped server runs all requests at one instant, so a waiter seen then may have arrived after the
        // opening.
        if (wait.lockName !== lockName || sinceMs >= atMs || wait.returnMs < atMs) continue;
        if (wait.returnMs === Number.POSITIVE_INFINITY) continue;
        judge.decided("L2 of a latch");
        if (wait.returnMs > toldByMs(world, { ...wait, decidedMs: atMs }))
          judge.violated(
            "L2",
            `${wait.label} waited for ${lockName} when it opened at ${atMs.toFixed(1)} ms, and until ${wait.returnMs.toFixed(1)} ms`,
          );
      }
  },
};

/** Whether this script decremented the count to zero. */
function hasOpened({ recorder }: World, { keys: [key] }: Call): boolean {
  const observer = recorder.witness?.observer;
  if (observer === undefined) throw new Error("there is no observer of the server");
  const before = membersOf(observer.before, key).get("count") ?? 0;
  return before > 0 && membersOf(observer.after, key).get("count") === 0;
}

function recorded({ judge, member, lockName, session }: Scene, verb: Verb, args: Arguments): Draft {
  return judge.recorder.called({ process: member.process, lockName, verb, args, owner: `s${session.id}` });
}

async function setCount(scene: Scene, latch: CountDownLatch): Promise<null> {
  const { session, judge } = scene;
  const count = 1 + (session.other % 3);
  const draft = recorded(scene, "set-count", { count });
  const isSet = await latch.trySetCount(count);
  judge.recorder.ended(draft, isSet ? "ok" : "no", isSet ? undefined : "busy");
  return null;
}

async function countDown(scene: Scene, latch: CountDownLatch): Promise<null> {
  const { session, judge, member, world } = scene;
  const caller = session.renew ? { callerId: `caller ${session.other}` } : {};
  const draft = recorded(scene, "count-down", { count: 1, ...caller });
  const left = await latch.countDown(1, caller);
  const again = sentOf(world).again.some(({ process, atMs }) => process === member.process && atMs >= draft.callMs);
  if (!again) {
    judge.recorder.ended(draft, "ok");
    draft.result = left;
    return null;
  }
  // The first copy has counted, possibly for an earlier count; the later copy returns the remaining value of the
  // current one.
  const count = recorded(scene, "count", {});
  count.callMs = draft.callMs;
  judge.recorder.ended(count, "ok");
  count.result = left;
  return null;
}

async function wait(scene: Scene, latch: CountDownLatch): Promise<void> {
  const { session, world, judge } = scene;
  const waitMs = Math.min(session.waitMs, PATIENCE_MS);
  const draft = recorded(scene, "await", { waitMs });
  const own: Wait = {
    process: scene.member.process,
    label: `s${session.id}`,
    lockName: scene.lockName,
    callMs: world.nowMs,
    returnMs: Number.POSITIVE_INFINITY,
  };
  sentOf(world).waits.push(own);
  await call(
    scene,
    async (signal) => {
      try {
        await latch.await({ waitMs, label: `s${session.id}`, ...(signal && { signal }) });
      } catch (error) {
        const hasGivenUp = !(error instanceof StoreError) && (error instanceof LockError || signal?.aborted === true);
        // A caller whose request never arrived has learned nothing about the latch.
        if (hasGivenUp && sentOf(world).waiting.has(`s${session.id}`)) judge.recorder.ended(draft, "no", "gave-up");
        throw error;
      }
      judge.recorder.ended(draft, "ok");
      judge.grantCount += 1;
      return null;
    },
    waitMs,
  );
  own.returnMs = world.nowMs;
}

/** When a hold is released without a script, on a manual clock (docs/adr/149). */
import { beforeEach, describe, expect, test } from "vitest";
import type { Lease } from "../../src/core/lease.js";
import { Answer, lost, NOW_US, never, ScriptedLock, watch } from "./scripted-lock.js";

const LEASE_MS = 30_000;

let world: ScriptedLock;
/** The outcomes of the next native releases. */
let outcomes: ("released" | "kept" | "waited" | Error)[];
/** What was sent: `free` for a native release, otherwise a verb; `again` for a release that may have run before. */
let sent: string[];

beforeEach(() => {
  world = new ScriptedLock({ isHandedOff: true });
  outcomes = [];
  sent = [];
  const { release } = world.protocol;
  Object.assign(world.protocol, {
    async releaseFree() {
      sent.push("free");
      const outcome = outcomes.shift() ?? "released";
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
    release(...[grant, timeoutMs, mayHaveRun]: Parameters<typeof release>) {
      sent.push(mayHaveRun === true ? "again" : "release");
      return release.call(world.protocol, grant, timeoutMs);
    },
  });
});

/** A caller waits for the lock, and gets it by message. */
async function granted(): Promise<Lease | undefined> {
  await world.session.clientInbox.open(1_000);
  const { acquire } = world.answers;
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: LEASE_MS, nowUs: NOW_US });
  const waiting = watch(world.lock.acquire());
  await world.runtime.advance(5);
  world.answers.acquire = acquire;
  world.store.push(`+${world.lastNumber} 7 ${NOW_US + 5_000}`);
  await world.runtime.advance(5);
  return waiting.value;
}

describe("a hold is released natively", () => {
  test("if the reply to its only request granted it", async () => {
    const lease = await world.lock.acquire();
    expect(await lease.release()).toBe("released");
    expect(sent).toEqual(["free"]);
  });

  test("and by the script as well if others wait, and then counts as released whatever the script replies", async () => {
    for (const reply of ["released", "unclaimed", "claimed"] as const) {
      sent = [];
      outcomes = ["waited"];
      world.answers.release = async () => reply;
      expect(await (await world.lock.acquire()).release()).toBe("released");
      expect(sent).toEqual(["free", "again"]);
    }
  });

  test("and if it no longer held the lock, the script says why", async () => {
    outcomes = ["kept", "kept"];
    world.answers.release = async () => "unclaimed";
    expect(await (await world.lock.acquire()).release()).toBe("expired-unclaimed");
    world.answers.release = async () => "claimed";
    await expect((await world.lock.acquire()).release()).rejects.toMatchObject({ reason: "server-lost" });
    expect(sent).toEqual(["free", "release", "free", "release"]);
  });

  test("and counts as released if the script that follows is refused first, and then finds the lock free", async () => {
    outcomes = ["waited"];
    const replies = [Promise.reject(lost(false)), Promise.resolve("unclaimed" as const)];
    world.answers.release = () => replies.shift() ?? Promise.reject(lost());
    const releasing = watch((await world.lock.acquire()).release());
    await world.runtime.advance(100);
    expect(releasing.value).toBe("released");
    expect(sent).toEqual(["free", "again", "again"]);
  });

  test("and may have been carried out if the script that follows is never accepted", async () => {
    outcomes = ["waited"];
    world.answers.release = () => Promise.reject(lost(false));
    const releasing = watch((await world.lock.acquire()).release());
    await world.runtime.advance(10_000);
    expect(releasing.error).toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: true });
  });

  test("and tells the script that the lock may be free if the client may have sent the commands twice", async () => {
    outcomes = ["kept"];
    const lease = await world.lock.acquire();
    const { protocol } = world;
    const { releaseFree } = protocol;
    Object.assign(protocol, {
      releaseFree(...call: Parameters<NonNullable<typeof releaseFree>>) {
        world.store.reconnect("commands");
        return releaseFree?.call(protocol, ...call);
      },
    });
    world.answers.release = async () => "claimed";
    expect(await lease.release()).toBe("released");
    expect(sent).toEqual(["free", "again"]);
  });

  test("within about two command timeouts, even if both requests are slow", async () => {
    outcomes = ["waited"];
    const { releaseFree } = world.protocol;
    Object.assign(world.protocol, {
      async releaseFree(...call: Parameters<NonNullable<typeof releaseFree>>) {
        await new Promise<void>((resume) => world.runtime.startTimer(resume, 1_900, true));
        return releaseFree?.call(world.protocol, ...call);
      },
    });
    world.answers.release = () => never();
    const releasing = watch((await world.lock.acquire()).release());
    await world.runtime.advance(4_300);
    expect(releasing.state).toBe("rejected");
  });

  test("and the script has time for its reply, although the process stalled before it read the first one", async () => {
    outcomes = ["waited"];
    const { releaseFree } = world.protocol;
    Object.assign(world.protocol, {
      async releaseFree(...call: Parameters<NonNullable<typeof releaseFree>>) {
        await new Promise<void>((resume) => world.runtime.startTimer(resume, 10_000, true));
        return releaseFree?.call(world.protocol, ...call);
      },
    });
    const releasing = watch((await world.lock.acquire()).release());
    await world.runtime.advance(10_100);
    expect(releasing.value).toBe("released");
    expect(world.sentOf("release").map(({ timeoutMs }) => timeoutMs)).toEqual([200]);
  });

  test("and close waits for the second request", async () => {
    outcomes = ["waited"];
    const reply = new Answer<"released">();
    world.answers.release = () => reply.promise;
    const lease = await world.lock.acquire();
    const releasing = watch(lease.release());
    const closing = watch(world.session.close());
    await world.runtime.advance(5);
    expect(closing.state).toBe("pending");
    reply.resolve("released");
    await world.runtime.advance(5);
    expect(closing.state).toBe("fulfilled");
    expect(releasing.value).toBe("released");
  });

  test("once: after a lost reply the script follows, which may find it released", async () => {
    outcomes = [lost()];
    world.answers.release = async () => "claimed";
    const releasing = watch((await world.lock.acquire()).release());
    await world.runtime.advance(100);
    expect(releasing.value).toBe("released");
    expect(sent).toEqual(["free", "again"]);
  });
});

describe("a hold is released by the script", () => {
  test("if it was granted by message, and so is the next hold of that lock", async () => {
    expect(await (await granted())?.release()).toBe("released");
    expect(sent).toEqual(["release"]);
    await (await world.lock.acquire()).release();
    expect(sent).toEqual(["release", "release"]);
  });

  test("if it was granted by message, but the next hold is released natively if that one was long", async () => {
    const lease = await granted();
    await world.runtime.advance(2_000);
    await lease?.release();
    await (await world.lock.acquire()).release();
    expect(sent).toEqual(["release", "free"]);
  });

  test("if one of its requests has no reply", async () => {
    const replies = [Promise.reject(lost()), Promise.resolve({ outcome: "granted", token: 7 } as const)];
    world.answers.acquire = () => replies.shift() ?? Promise.reject(lost());
    const acquiring = watch(world.lock.acquire());
    await world.runtime.advance(1_000);
    await acquiring.value?.release();
    expect(sent).toEqual(["release"]);
  });

  test("if the connection was replaced while it was requested, because the first copy may still arrive", async () => {
    world.answers.acquire = async () => {
      world.store.reconnect("commands");
      return { outcome: "granted", token: 7 };
    };
    await (await world.lock.acquire()).release();
    expect(sent).toEqual(["release"]);
  });
});

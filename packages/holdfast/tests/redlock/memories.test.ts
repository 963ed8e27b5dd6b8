/** How clients pass the length of the longest lease between the servers of a quorum. */
import { expect, test } from "vitest";
import { QuorumError, StoreError } from "../../src/core/errors.js";
import { Guard } from "../../src/core/guard.js";
import type { ServerMemory, Standing, Store } from "../../src/core/store.js";
import { Ballot, type Verdict } from "../../src/redlock/ballot.js";
import { informedRun, Memories } from "../../src/redlock/memories.js";
import type { QuorumServer } from "../../src/redlock/servers.js";
import { ManualRuntime, settle } from "../unit/manual-runtime.js";

const LEASE_MS = 20_000;
const TIMEOUT_MS = 1_000;

type Mind = "remembers" | "waits" | "forgot" | "silent" | "down";

/** One fake server: its state, and the requests it received. */
class Server {
  readonly asked: { readonly leaseMs: number; readonly heard: string | undefined }[] = [];
  readonly memory: ServerMemory;
  mind: Mind;
  longestMs: number;
  #last: Standing | undefined;

  constructor(mind: Mind, longestMs: number) {
    this.mind = mind;
    this.longestMs = longestMs;
    const last = (): Standing | undefined => this.#last;
    this.memory = {
      knows: (leaseMs) => {
        const said = last();
        return said?.outcome === "settled" && said.longestMs >= leaseMs ? said.run : undefined;
      },
      get aloneIn() {
        const said = last();
        return said?.outcome === "alone" ? said.run : undefined;
      },
      ask: (leaseMs, _timeoutMs, heard) => this.#ask(leaseMs, heard),
    };
  }

  async #ask(leaseMs: number, heard: string | undefined): Promise<Standing> {
    this.asked.push({ leaseMs, heard });
    if (this.mind === "silent") return new Promise(() => {});
    if (this.mind === "down") throw new StoreError("a", { mayHaveRun: false, transient: true, cause: "away" });
    this.longestMs = Math.max(this.longestMs, leaseMs);
    if (this.mind === "forgot" && heard !== undefined) this.mind = "waits";
    const { longestMs } = this;
    if (this.mind === "remembers") this.#last = { outcome: "settled", longestMs, run: "run" };
    else this.#last = { outcome: this.mind === "waits" ? "quiet" : "alone", longestMs, restMs: 500, run: "run" };
    return this.#last;
  }
}

/**
 * The outcome of an attempt that all three servers grant. `runs` lists for each server the run in which it knows the
 * length of the lease, before and after its vote.
 */
async function electedBy(
  ...runs: readonly (readonly [before: string | undefined, after: string | undefined])[]
): Promise<string> {
  const runtime = new ManualRuntime();
  const servers = runs.map(([before, after], index) => {
    let hasVoted = false;
    const store = {
      async run() {
        hasVoted = true;
        return [0, 7];
      },
      memory: {
        knows: () => (hasVoted ? after : before),
        aloneIn: undefined,
        ask: () => Promise.reject(new Error("told before")),
      },
    };
    return { index, store: store as unknown as Store, guard: new Guard([], runtime) };
  });
  const verdict = await new Promise<Verdict>((onVerdict) => {
    new Ballot({
      runtime,
      servers,
      place: { name: "a", lock: "a", fence: "b", channel: "c" },
      claim: { owner: "o/1/20000/1", number: 1, leaseMs: LEASE_MS, amount: 1 },
      timeoutMs: TIMEOUT_MS,
      onVerdict,
    });
  });
  return verdict.outcome;
}

interface Scene {
  readonly servers: readonly Server[];
  readonly quorum: readonly QuorumServer[];
  readonly memories: Memories;
  readonly runtime: ManualRuntime;
}

function scene(...minds: readonly (readonly [Mind, number])[]): Scene {
  const servers = minds.map(([mind, longestMs]) => new Server(mind, longestMs));
  const runtime = new ManualRuntime();
  const quorum = servers.map(({ memory }, index) => ({
    index,
    store: { memory } as unknown as Store,
    guard: new Guard([], runtime),
  }));
  return { servers, quorum, memories: new Memories(quorum, runtime), runtime };
}

/** The longest lease that was reported to server `at` after its memory loss; undefined if none was reported. */
async function toldTo(at: number, ...minds: readonly (readonly [Mind, number])[]): Promise<number | undefined> {
  const { servers, memories, runtime } = scene(...minds);
  const told = memories.inform("a", 1_000, TIMEOUT_MS);
  await settle();
  await runtime.advance(TIMEOUT_MS);
  await runtime.advance(TIMEOUT_MS);
  void told;
  return servers[at]?.asked.find(({ heard }) => heard !== undefined)?.leaseMs;
}

test("the lease length is reported to a majority before the first request, and only once", async () => {
  const { servers, quorum, memories } = scene(["remembers", 0], ["remembers", 0], ["remembers", 0]);
  await expect(memories.inform("a", LEASE_MS, TIMEOUT_MS)).resolves.toBeUndefined();
  expect(servers.map(({ longestMs }) => longestMs)).toEqual([LEASE_MS, LEASE_MS, LEASE_MS]);
  expect(quorum.map((server) => informedRun(server, LEASE_MS))).toEqual(["run", "run", "run"]);
  expect(memories.inform("a", LEASE_MS, TIMEOUT_MS)).toBeUndefined();
  expect(memories.inform("a", 1_000, TIMEOUT_MS)).toBeUndefined();
  expect(memories.inform("a", 2 * LEASE_MS, TIMEOUT_MS)).toBeInstanceOf(Promise);
  await settle();
});

test("a hung server does not delay the report and counts as not informed", async () => {
  const { quorum, memories, runtime } = scene(["silent", 0], ["remembers", 0], ["remembers", 0]);
  const told = memories.inform("a", LEASE_MS, TIMEOUT_MS);
  await settle();
  await runtime.advance(10);
  await expect(told).resolves.toBeUndefined();
  expect(quorum.map((server) => informedRun(server, LEASE_MS))).toEqual([undefined, "run", "run"]);
});

test("a lease that only a minority may grant fails with the reason of each server", async () => {
  const { memories } = scene(["down", 0], ["waits", 0], ["remembers", 0]);
  const failure = await memories.inform("a", LEASE_MS, TIMEOUT_MS);
  expect(failure).toBeInstanceOf(QuorumError);
  expect(failure).toMatchObject({ mayHaveRun: false, transient: true, resumesInMs: undefined });
  expect(failure?.message).toBe(
    '"a": no majority of the servers is allowed to grant it yet: server 0 failed (away), server 1 failed (this server took over from another or was restarted, so it may not know about every held lock: it grants no locks for another 500 ms), server 2 replied; nothing was carried out.',
  );
});

test.each<[string, string, readonly (readonly [string | undefined, string | undefined])[]]>([
  [
    "a majority knew it before",
    "elected",
    [
      ["r", "r"],
      ["r", "r"],
      [undefined, undefined],
    ],
  ],
  [
    "it was informed only with the request for its vote",
    "unreached",
    [
      ["r", "r"],
      [undefined, "r"],
      [undefined, "r"],
    ],
  ],
  [
    "a server has restarted meanwhile",
    "unreached",
    [
      ["r", "r"],
      ["r", "s"],
      ["r", undefined],
    ],
  ],
])("a vote counts only if its server knew the lease length before the first request: %s", async (_, outcome, runs) => {
  expect(await electedBy(...runs)).toBe(outcome);
});

test.each<[string, number | undefined, readonly (readonly [Mind, number])[]]>([
  [
    "of three servers, both others have replied",
    20_000,
    [
      ["forgot", 0],
      ["remembers", 20_000],
      ["remembers", 3_000],
    ],
  ],
  [
    "of three servers, one waits and already knows the lease",
    20_000,
    [
      ["forgot", 0],
      ["waits", 20_000],
      ["remembers", 0],
    ],
  ],
  [
    "one of two that cannot be asked may be the only one to know",
    undefined,
    [
      ["forgot", 0],
      ["down", 0],
      ["remembers", 0],
    ],
  ],
  [
    "of three servers, one other hangs",
    undefined,
    [
      ["forgot", 0],
      ["silent", 0],
      ["remembers", 0],
    ],
  ],
  [
    "of five servers, three others have replied",
    9_000,
    [
      ["forgot", 0],
      ["down", 0],
      ["remembers", 0],
      ["remembers", 9_000],
      ["remembers", 0],
    ],
  ],
  [
    "of five servers, two forgot",
    9_000,
    [
      ["forgot", 0],
      ["forgot", 0],
      ["remembers", 0],
      ["remembers", 9_000],
      ["remembers", 0],
    ],
  ],
  [
    "of five servers, two forgot and one is down",
    undefined,
    [
      ["forgot", 0],
      ["forgot", 0],
      ["down", 0],
      ["remembers", 9_000],
      ["remembers", 0],
    ],
  ],
  [
    "a majority forgot, as at the first start, so the known leases are used",
    9_000,
    [
      ["forgot", 9_000],
      ["forgot", 0],
      ["down", 0],
    ],
  ],
])(
  "a server that lost its memory gets the longest lease once enough others have replied: %s",
  async (_, expected, minds) => {
    expect(await toldTo(0, ...minds)).toBe(expected);
  },
);

test("with a majority, callers continue while a restarted server is informed at most once per second", async () => {
  const { servers, memories, runtime } = scene(["forgot", 0], ["remembers", 0], ["remembers", 0]);
  await memories.inform("a", 1_000, TIMEOUT_MS);
  await settle();
  const [forgetful] = servers as [Server];
  const heardBy = (): number => forgetful.asked.filter(({ heard }) => heard !== undefined).length;
  expect(heardBy()).toBe(1);
  // The server restarts once more.
  forgetful.mind = "forgot";
  await forgetful.memory.ask(1_000, TIMEOUT_MS);
  expect(memories.inform("a", 1_000, TIMEOUT_MS)).toBeUndefined();
  await settle();
  expect(heardBy()).toBe(1);
  await runtime.advance(1_000);
  expect(memories.inform("a", 1_000, TIMEOUT_MS)).toBeUndefined();
  await settle();
  expect(heardBy()).toBe(2);
});

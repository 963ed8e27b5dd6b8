/** Mistakes with several servers: which servers are asked and counted, what is released, and how tokens are made. */
import { patch, type Tooth, test } from "../tooth.js";

const BALLOT = "redlock/ballot.ts";
const WAITER = "redlock/waiter.ts";
const RULES = "redlock/rules.test.ts";
const TOKENS = "redlock/tokens.test.ts";
const OPTIONS = "redlock/options.test.ts";
const MEMORIES = "redlock/memories.test.ts";

/** Teeth for quorums. */
export const QUORUM: readonly Tooth[] = [
  {
    id: "even-quorum",
    bugs: ["B06"],
    mistake: "an even number of servers is accepted, and two callers share their votes evenly",
    patches: [patch("choose-stores.ts", "if (length % 2 === 0) {", "if (length < 0) {")],
    catcher: test(OPTIONS, "4 servers are refused, with the reason"),
  },
  {
    id: "nothing-undone-between-attempts",
    bugs: ["B07"],
    mistake: "a failed attempt does not release its votes before the next one, which they block",
    patches: [
      patch(
        WAITER,
        "void this.#cleanUp(ballot);\n    this.#deadline.start();\n    if (!this.#hasPublishedWait)",
        "this.#deadline.start();\n    if (!this.#hasPublishedWait)",
      ),
    ],
    catcher: test(TOKENS, "all get their turns on 3 servers with random network delays (seed 1)"),
  },
  {
    id: "undone-where-granted-only",
    bugs: ["B08"],
    mistake: "a failed attempt is released only on servers whose grant was received",
    patches: [
      patch(
        "redlock/quorum-cleanup.ts",
        "this.#quorum.servers.filter(({ index }) => this.#settled[index] !== true);",
        'this.#quorum.servers.filter(({ index }) => this.#ballot.votes[index]?.outcome === "granted");',
      ),
    ],
    catcher: test(RULES, "including servers that refused, did not reply, or whose grant reply was lost"),
  },
  {
    id: "waits-for-the-slowest-server",
    bugs: ["B10"],
    mistake: "the replies of all servers are awaited although a majority has granted",
    patches: [
      patch(
        BALLOT,
        'if (decision.outcome === "wait") return;',
        'if (decision.outcome === "wait" || this.#votes.includes(undefined)) return;',
      ),
    ],
    catcher: test(RULES, "a quorum of 5 servers with 1 hung loses no time"),
  },
  {
    id: "failed-extension-gives-up-the-rest",
    bugs: ["B28"],
    mistake: "a renewal without replies from a majority releases the lease, although time remains",
    patches: [
      patch(
        "redlock/protocol.ts",
        "return whyLost(claim, token, timeoutMs);\n      throw",
        "return whyLost(claim, token, timeoutMs);\n      await quorumCleanups.cleanUp(ballot, timeoutMs);\n      throw",
      ),
    ],
    catcher: test(RULES, "replies from a minority neither lose nor renew the lease"),
  },
  {
    id: "semaphore-by-majority",
    bugs: ["B48"],
    mistake: "a semaphore can be created on several servers, where two permits can have three holders",
    patches: [
      patch(
        "redlock/factories.ts",
        "return (name) => {\n",
        'return (name) => {\n    if (kind === "semaphore") return undefined as never;\n',
      ),
    ],
    catcher: test(OPTIONS, "semaphore is refused on a quorum, with the reason"),
  },
  {
    id: "maximum-without-write-back",
    bugs: ["B57"],
    mistake: "the token is the highest number of a majority, and the other servers are not told",
    patches: [
      patch(BALLOT, 'if (decision.outcome === "granted") this.#elect();', "if (this.#token > 0) this.#elect();"),
    ],
    catcher: test(TOKENS, "is not issued if it is unknown whether a server of its majority has stored it"),
  },
  {
    id: "majority-too-late",
    bugs: ["B04"],
    mistake: "the clocks are not read again when a majority has granted",
    patches: [
      patch(BALLOT, "if (this.leftMs() <= 0) {", "if (this.leftMs() < 0) {"),
      patch(WAITER, "if (ballot.leftMs() <= 0) {", "if (ballot.leftMs() < 0) {"),
    ],
    catcher: test(
      RULES,
      "K6: replies read after a stall beyond the lease are not trusted, and their grants are released",
    ),
  },
  {
    id: "attempt-under-an-old-owner",
    bugs: [],
    mistake: "the next attempt has the owner id of the last, whose release may still be in flight",
    patches: [patch(WAITER, "this.#nextClaim = undefined;\n", "this.#nextClaim = claim;\n")],
    catcher: test(RULES, "a new attempt never reuses an owner id"),
  },
  {
    id: "crowd-without-a-gate",
    bugs: [],
    mistake: "all waiters that learn of a release ask all servers at the same time, and block each other",
    patches: [
      patch("redlock/attempt-delay.ts", "if (this.#isFirstFree()) return this.#line.firstServer;", ""),
      patch("redlock/attempt-delay.ts", "this.#isMajorityFree() ? undefined : this.#line.whereFirst", "undefined"),
    ],
    catcher: test(
      "redlock/crowd.test.ts",
      "with 5 servers, 30 processes contend at one server first and rarely split the votes",
    ),
  },
  {
    id: "gate-asked-for-ever",
    bugs: [],
    mistake: "a waiter woken by its timer asks the first server too, where a crash may have left a lock",
    patches: [
      patch(
        "redlock/attempt-delay.ts",
        "new Polling(runtime, () => attempt(undefined))",
        "new Polling(runtime, () => attempt(line.firstServer))",
      ),
    ],
    catcher: test(
      "redlock/crowd.test.ts",
      "a stale grant at the first server does not keep a waiter from a free majority",
    ),
  },
  {
    id: "release-without-giving-way",
    bugs: [],
    mistake: "a client that reacquires immediately after its release is always first",
    patches: [
      patch(
        "redlock/waiter.ts",
        "if (this.#line?.isWanted === true && this.#options.waitMs > RECHECK_MS) this.#delay?.giveWay();\n    else ",
        "",
      ),
    ],
    catcher: test(
      "redlock/crowd.test.ts",
      "a client that reacquires immediately, 20 ms away, does not starve the other client",
    ),
  },
  {
    id: "foiled-call-each-other-back",
    bugs: [],
    mistake: "the releases of a failed attempt wake all other waiters",
    patches: [patch("redlock/quorum-cleanup.ts", "this.#givesWay = ballot.isElected;", "this.#givesWay = true;")],
    catcher: test(
      "redlock/crowd.test.ts",
      "attempts that fail after the first server do not trigger each other's retries",
    ),
  },
  {
    id: "straggler-forgotten",
    bugs: [],
    mistake: "a grant for which nobody waits any longer is not released",
    patches: [
      patch(
        "redlock/quorum-cleanup.ts",
        "this.#settled[index] ||= wasAccounted || (held && isAccounted);",
        "this.#settled[index] = true;",
      ),
      patch(
        "redlock/quorum-cleanup.ts",
        "if (this.#underWay[server.index] === 0) void this.#send(server, session.commandTimeoutMs);",
        "this.#underWay[server.index] ??= 0;",
      ),
    ],
    catcher: test(RULES, "a grant that a slow server makes after the release is released"),
  },
  {
    id: "forgotten-length",
    bugs: [],
    mistake:
      "a server that lost its memory stays out for the longest lease that it has been told of since, and the others are not asked",
    patches: [patch("server/lineage.lua", "place == 'voter' and marker[7] ~= run and heard ~= run", "false")],
    catcher: test(
      "redlock/restart.test.ts",
      "a server that forgot an unusually long lease grants nothing while that lease is held",
    ),
  },
  {
    id: "too-few-are-asked",
    bugs: [],
    mistake:
      "a server that lost its memory is told the longest lease of the servers that can be asked, however few they are",
    patches: [patch("redlock/memories.ts", "if (known(replies) < this.#majority && !areMostAlone) return;", "")],
    catcher: test(
      MEMORIES,
      "a server that lost its memory gets the longest lease once enough others have replied: one of two that cannot be asked may be the only one to know",
    ),
  },
  {
    id: "told-with-the-vote",
    bugs: [],
    mistake: "each server is told the length of a lease only right before its vote, when others may already have voted",
    patches: [
      patch(
        BALLOT,
        "if (run !== undefined && informedRun(server, claim.leaseMs) === run) return vote;",
        "if (run !== undefined || informedRun(server, claim.leaseMs) !== undefined) return vote;",
      ),
    ],
    catcher: test(
      MEMORIES,
      "a vote counts only if its server knew the lease length before the first request: it was informed only with the request for its vote",
    ),
  },
];

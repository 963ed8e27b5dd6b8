/**
 * A mutex in a cluster slot that may move between two masters. The first master has a lagging replica, which may take
 * over without its master's last writes (docs/adr/082-failover-grace-in-clusters.md).
 *
 * The servers run the production scripts with their own run filled in. Clients do what Holdfast does in a cluster: with
 * one request after another, they find the run in which the slot is complete, while slots move and masters fail. Their
 * granting script names that run and is loaded on all masters. A request runs wherever the slot is when it arrives.
 */
import { canonical, LEASE_MS } from "./canonical.js";
import {
  ANY_TEXT,
  type ClientState,
  type ClusterSetting,
  type ClusterState,
  copyOf,
  initialOf,
  mastersOf,
  move,
  promote,
  RUNS,
  type Site,
  SLOT_MARKER,
  serversAge,
  serversOf,
  write,
} from "./cluster-state.js";
import type { Step, World } from "./explore.js";
import {
  type Add,
  addClaims,
  type ClaimState,
  claimsAge,
  giveUp,
  hear,
  heldTwice,
  LETTERS,
  MARKER,
  type Message,
  nameOf,
  nextTick,
  type Owner,
  sent,
  shifted,
} from "./failover-claims.js";
import { HANDED, mutexKind, ownerOf } from "./lock-kinds.js";
import { byText } from "./lock-state.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** Rules of the client, and assumptions about the cluster, that a search can switch off. */
export type ClusterRule = "name-the-run" | "ask-all-masters" | "short-trust" | "no-kept-load" | "no-third-server";

type Off = ReadonlySet<ClusterRule>;

/** The servers in words. */
const SITES = ["the first master", "the second", "the replica that took over"] as const;

/** The world. */
export class ClusterWorld implements World<ClusterState> {
  readonly initial: ClusterState;
  readonly #owners: readonly Owner[];
  readonly #servers: readonly Server[];
  readonly #off: Off;

  constructor(setting: ClusterSetting, texts: ReadonlyMap<string, string>, off: readonly ClusterRule[] = []) {
    this.#off = new Set(off);
    this.#servers = serversOf(texts);
    this.#owners = setting.clients.flatMap((count, client) =>
      Array.from({ length: count }, (_, nth) => ({ client, owner: ownerOf(LETTERS[client] ?? "", nth, 1) })),
    );
    this.initial = initialOf(setting, this.#owners.length);
  }

  text(state: ClusterState): string {
    state.requests.sort(byText);
    state.replies.sort(byText);
    return canonical(JSON.stringify(state), state.t);
  }

  parse(text: string): ClusterState {
    return JSON.parse(text);
  }

  isGood(state: ClusterState): boolean {
    return state.claims.every(({ ph }) => ph === "end");
  }

  violation(state: ClusterState): string | undefined {
    return heldTwice(state);
  }

  async steps(state: ClusterState): Promise<readonly Step<ClusterState>[]> {
    const steps: Step<ClusterState>[] = [];
    const add: Add<ClusterState> = (label, isFault, change) => {
      const next = copyOf(state);
      const violation = change(next);
      steps.push({ label, next, isFault, violation: typeof violation === "string" ? violation : undefined });
    };
    const mayAsk = (client: number): boolean => {
      const { found, needsLesson } = state.clients[client] as ClientState;
      return found >= 0 && needsLesson === 0;
    };
    addClaims(state, this.#owners, mayAsk, add, (next, number, verb) => {
      const { client } = this.#owners[number] as Owner;
      sent(next, number, verb, (next.clients[client] as ClientState).found, 0);
    });
    for (const client of state.clients.keys()) await this.#addFinding(state, client, add);
    for (const at of state.requests.keys()) await this.#addArrival(state, at, add);
    for (const [at, reply] of state.replies.entries()) {
      add(`${nameOf(this.#owners, reply[0])} hears of its ${reply[1]}`, false, (next) => {
        next.replies.splice(at, 1);
        const [number, verb] = reply;
        const broken = hear(next, reply, true);
        // The reclaim that follows a failed extend is sent by the same client, and names no run.
        const last = next.requests.at(-1);
        if (verb === "extend" && last?.[0] === number && last.length === 4) last.push(-1, 0);
        return broken;
      });
    }
    this.#addFaults(state, add);
    const isUnderWay = state.claims.some(({ call }) => call === 1);
    if (!isUnderWay || state.left.delays > 0) {
      add(isUnderWay ? "a tick passes, with messages under way" : "a tick passes", isUnderWay, (next) => {
        if (isUnderWay) next.left.delays -= 1;
        next.t = nextTick(next.t);
        serversAge(next);
        claimsAge(next);
      });
    }
    return steps;
  }

  #addFaults(state: ClusterState, add: Add<ClusterState>): void {
    if (state.left.moves > 0) add("the slot moves to the other shard", true, move);
    if (state.isPromoted === 1) return;
    if (state.backlog.length > 0) {
      add("the replica gets the next write", false, (next) => {
        next.replica = next.backlog.shift() as Held;
      });
    }
    add("the replica takes over, and the first master is gone", true, (next) => {
      promote(next);
      for (const request of next.requests) request[5] = 1;
      for (const client of next.clients) {
        // An election takes longer than a client trusts a reply, and longer than loading a script takes.
        const isLate = client.found === 0 && client.needsLesson === 0 && !this.#off.has("short-trust");
        const isLost = client.found !== -1 && client.needsLesson === 1 && !this.#off.has("no-kept-load");
        if (isLate || isLost) Object.assign(client, { found: -1, step: 0, of: 0, needsLesson: 0 });
      }
    });
  }

  /** The requests of a client before it may acquire. Replies are immediate; anything may happen between requests. */
  async #addFinding(state: ClusterState, client: number, add: Add<ClusterState>): Promise<void> {
    const { found, step, of, needsLesson } = state.clients[client] as ClientState;
    const wants = this.#owners.some((owner, i) => owner.client === client && state.claims[i]?.ph === "ask");
    if (!wants) return;
    const letter = LETTERS[client] as string;
    const become = (next: ClusterState, change: Partial<ClientState>): void => {
      Object.assign(next.clients[client] as ClientState, change);
    };
    if (found !== -1) {
      if (needsLesson === 0) return;
      add(`${letter} loads the script for the run of ${SITES[found]} on all masters`, false, (next) => {
        become(next, { needsLesson: 0 });
        for (const site of mastersOf(next)) next.knows[site] |= this.#textOf(found);
      });
      return;
    }
    if (step === 0 || step === 3) {
      const { slot, isWhole } = await this.#look(state, step === 3 ? RUNS[of] : "");
      const isDone = isWhole && (step === 0 || of === state.at);
      const what = isDone ? "whole" : step === 0 ? "not known to be whole" : "another server's by now";
      add(`${letter} looks at the slot: on ${SITES[state.at]}, and ${what}`, false, (next) => {
        write(next, slot);
        if (isDone) become(next, { found: next.at, step: 0, of: 0 });
        else become(next, step === 0 ? { step: 1, of: next.at } : { step: 0, of: 0 });
      });
      return;
    }
    const asked = step === 1 ? of : of === 1 ? (state.isPromoted === 1 ? 2 : 0) : 1;
    if (!mastersOf(state).includes(asked)) {
      add(`${letter} asks ${SITES[asked]}, which is gone`, false, (next) => become(next, { step: 0, of: 0 }));
      return;
    }
    const { home, isSettled } = await this.#ask(state, asked);
    add(`${letter} asks ${SITES[asked]} whether it may grant: ${isSettled ? "yes" : "not yet"}`, false, (next) => {
      next.homes[asked === 1 ? 1 : 0] = home;
      if (!isSettled) become(next, { step: 0, of: 0 });
      else become(next, { step: step === 1 && !this.#off.has("ask-all-masters") ? 2 : 3 });
    });
  }

  async #look(state: ClusterState, vouched: string): Promise<{ readonly slot: Held; readonly isWhole: boolean }> {
    const call: Call = { script: "server/shard", keys: [SLOT_MARKER], args: [vouched, ""] };
    const { held, reply } = await this.#run(state.at, state.slot, state.t, call);
    return { slot: held, isWhole: (reply as readonly unknown[])[0] === 0 };
  }

  async #ask(state: ClusterState, site: Site): Promise<{ readonly home: Held; readonly isSettled: boolean }> {
    const nowMs = Math.floor(state.t / 1_000);
    const call: Call = { script: "server/lineage", keys: [MARKER], args: [LEASE_MS, 0, "shard", ""] };
    const home = shifted(state.homes[site === 1 ? 1 : 0], nowMs);
    const { held, reply } = await this.#run(site, home, state.t, call);
    return { home: shifted(held, -nowMs), isSettled: (reply as readonly unknown[])[0] === 0 };
  }

  async #addArrival(state: ClusterState, at: number, add: Add<ClusterState>): Promise<void> {
    const request = state.requests[at] as Message;
    const [number, verb, age, token, run = -1, isOld = 0] = request;
    const name = nameOf(this.#owners, number);
    if (state.isPromoted === 1) {
      add(`the ${verb} of ${name} is lost`, true, (next) => {
        next.requests.splice(at, 1);
        giveUp(next, request);
      });
    }
    if (isOld === 1 && state.at === 1 && !this.#off.has("no-third-server")) {
      add(`the ${verb} of ${name} is overtaken by a failover and a move`, false, (next) => {
        next.requests.splice(at, 1);
        giveUp(next, request);
      });
      return;
    }
    if (verb === "acquire" && (state.knows[state.at] & this.#textOf(run as Site)) === 0) {
      add(`the acquire of ${name} is not known on ${SITES[state.at]}`, false, (next) => {
        next.requests.splice(at, 1);
        (next.claims[number] as ClaimState).call = 0;
        const { client } = this.#owners[number] as Owner;
        Object.assign(next.clients[client] as ClientState, { found: -1, step: 0, of: 0, needsLesson: 1 });
      });
      return;
    }
    const { owner } = this.#owners[number] as Owner;
    const call: Call =
      verb === "reclaim"
        ? { script: "mutex/reclaim", keys: ["l", "f", "q", HANDED, SLOT_MARKER], args: [owner, token, LEASE_MS] }
        : mutexKind.call(verb as "acquire", owner, 1, token, false);
    const outcome = await this.#run(state.at, state.slot, state.t, call);
    add(`${verb} of ${name} runs on ${SITES[state.at]}`, false, (next) => {
      next.requests.splice(at, 1);
      write(next, outcome.held);
      next.t += 1;
      const [code] = typeof outcome.reply === "number" ? [outcome.reply] : outcome.reply;
      const isAnswer = typeof outcome.reply === "number" || verb !== "acquire";
      next.replies.push([number, verb, age, isAnswer ? Number(code) : -1]);
    });
  }

  #run(site: Site, held: Held, us: number, call: Call): Promise<Outcome> {
    return (this.#servers[site] as Server).run(held, us, [], call);
  }

  /** The bit of the script text that names `run`. */
  #textOf(run: Site): number {
    return this.#off.has("name-the-run") ? ANY_TEXT : 1 << run;
  }
}

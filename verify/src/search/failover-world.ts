/**
 * A mutex on a master with a lagging replica, and a failover that loses what the replica has not received.
 *
 * The servers run the production scripts with a simulated INFO. Clients follow core and the stores: a script that
 * grants runs only on a server that knows it; a script is loaded into a server only after the server was queried
 * about itself, and it is queried again afterward. Requests may be late, lost with the master, or resent to the new
 * one. A claim is granted by a reply, or by a message of the server.
 */
import { canonical, LEASE_MS, START_US } from "./canonical.js";
import type { Step, World } from "./explore.js";
import {
  addClaims,
  type ClaimState,
  type ClaimsState,
  claimsAge,
  copyOfClaims,
  giveUp,
  hear,
  heldAfterTick,
  heldTwice,
  LETTERS,
  MARKER,
  type Message,
  nameOf,
  nextTick,
  type Owner,
  sent,
  shifted,
  type Verb,
} from "./failover-claims.js";
import { HANDED, INBOX, mutexKind, ownerOf } from "./lock-kinds.js";
import { byText } from "./lock-state.js";
import { type Call, type Held, type Outcome, Server } from "./server.js";

/** A rule of the client that can be switched off, or a violation of an assumption. */
export type FailoverRule = "ask-first" | "no-hand-off" | "fresh-owner" | "old-master-stops" | "reclaim";

/** The settings of one world. */
export interface FailoverSetting {
  /** The number of consecutive claims of each client. */
  readonly clients: readonly number[];
  readonly renewals: number;
  /** Ticks that pass while messages are in flight. */
  readonly delays: number;
  /** Requests in flight that are resent to the server that serves at that time. */
  readonly copies: number;
  /** Hand-overs that do not reach a waiter, because its subscriber connection is down. */
  readonly deaf: number;
  /**
   * The initial state, if not empty: after a failover that lost the grant of the first claim; or the first claim
   * holds and the last one waits, and the replica has both.
   */
  readonly begins?: "after" | "queued";
  /**
   * Whether the replica also gets its master's scripts, as before Redis 7. Then scripts that grant check the run
   * themselves.
   */
  readonly sharesScripts?: boolean;
}

interface ClientState {
  home: 0 | 1;
  /** What its server has replied: nothing yet, that it may grant, or that it may not. */
  view: "unasked" | "settled" | "quiet";
  /** The progress of loading a script: nothing to do, unknown script, queried, loaded. */
  teach: 0 | 1 | 2 | 3;
  deaf: 0 | 1;
}
interface State extends ClaimsState {
  t: number;
  held: [Held, Held];
  /** The master's data after each of the writes that the replica has not received. */
  backlog: Held[];
  knows: [0 | 1, 0 | 1];
  isPromoted: 0 | 1;
  clients: ClientState[];
  left: { renewals: number; delays: number; copies: number; deaf: number };
}

const MOST_BEHIND = 3;
const PROCESSES = ["a1", "b2"] as const;
/** The run id of each server; the second one was promoted. */
export const RUNS = ["a1", "b2/c3"] as const;

/** The scripts on one server: by name, and by name and the run that they are for. */
function textsOf(texts: ReadonlyMap<string, string>, server: 0 | 1): ReadonlyMap<string, string> {
  const former = server === 0 ? "0000" : "f00d";
  const informed = [...texts].map(
    ([name, text]) =>
      [
        name,
        text
          .replaceAll("redis.pcall('INFO', 'server')", `'run_id:${PROCESSES[server]} uptime_in_seconds:9'`)
          .replaceAll("redis.pcall('INFO', 'replication')", `'master_replid:c3 master_replid2:${former}'`),
      ] as const,
  );
  const meant = informed.flatMap(([name, text]) =>
    RUNS.map((run, of) => [`${name}@${of}`, text.replace(`~= '${RUNS[0]}' then`, `~= '${run}' then`)] as const),
  );
  return new Map([...informed, ...meant]);
}

/** The world of a failover. */
export class FailoverWorld implements World<State> {
  readonly initial: State;
  readonly #owners: readonly Owner[];
  readonly #servers: readonly [Server, Server];
  readonly #off: ReadonlySet<FailoverRule>;
  readonly #sharesScripts: boolean;

  constructor(setting: FailoverSetting, texts: ReadonlyMap<string, string>, off: readonly FailoverRule[] = []) {
    this.#off = new Set(off);
    this.#sharesScripts = setting.sharesScripts === true;
    this.#servers = [new Server(textsOf(texts, 0)), new Server(textsOf(texts, 1))];
    this.#owners = setting.clients.flatMap((count, client) =>
      Array.from({ length: count }, (_, nth) => ({
        client,
        owner: ownerOf(LETTERS[client] ?? "", this.#off.has("fresh-owner") ? 0 : nth, 1),
      })),
    );
    const marker: Held = [
      [MARKER, "hash", ["run", RUNS[0], "longestMs", `${LEASE_MS}`, "beforeMs", "0", "periodMs", "0"], 60_000],
    ];
    const { renewals, delays, copies, deaf } = setting;
    this.initial = {
      t: START_US,
      held: [marker, marker],
      backlog: [],
      knows: [1, this.#sharesScripts ? 1 : 0],
      isPromoted: 0,
      claims: this.#owners.map(() => ({ ph: "idle", call: 0, tok: 0, age: 0, floor: 0, pv: 0 })),
      clients: setting.clients.map(() => ({ home: 0, view: "settled", teach: 0, deaf: 0 })),
      requests: [],
      replies: [],
      highest: 0,
      left: { renewals, delays, copies, deaf },
    };
    if (setting.begins === "queued") this.#queue(marker);
    if (setting.begins !== "after") return;
    this.initial.isPromoted = 1;
    for (const client of this.initial.clients) Object.assign(client, { home: 1, view: "unasked" });
    Object.assign(this.initial.claims[0] as ClaimState, { ph: "held", tok: START_US - 1 });
    this.initial.highest = START_US - 1;
  }

  #queue(marker: Held): void {
    const [first, last] = [this.#owners[0], this.#owners.at(-1)];
    const held: Held = [
      ["f", "string", `${START_US - 1}`, 60_000],
      ["l", "string", first?.owner ?? "", LEASE_MS],
      ...marker,
      ["q", "zset", [last?.owner ?? "", "1"], 60_000],
    ];
    this.initial.held = [held, held];
    Object.assign(this.initial.claims[0] as ClaimState, { ph: "held", tok: START_US - 1 });
    Object.assign(this.initial.claims.at(-1) as ClaimState, { ph: "ask", floor: START_US - 1 });
    this.initial.highest = START_US - 1;
  }

  text(state: State): string {
    state.requests.sort(byText);
    state.replies.sort(byText);
    return canonical(JSON.stringify(state), state.t);
  }

  parse(text: string): State {
    return JSON.parse(text);
  }

  isGood(state: State): boolean {
    return state.claims.every(({ ph }) => ph === "end");
  }

  violation(state: State): string | undefined {
    return heldTwice(state);
  }

  async steps(state: State): Promise<readonly Step<State>[]> {
    const steps: Step<State>[] = [];
    const add = (label: string, isFault: boolean, change: (next: State) => unknown): void => {
      const next = copyOf(state);
      const violation = change(next);
      steps.push({ label, next, isFault, violation: typeof violation === "string" ? violation : undefined });
    };
    const mayAsk = (client: number): boolean => {
      const { view, teach } = state.clients[client] as ClientState;
      return this.#off.has("ask-first") || (view === "settled" && teach === 0);
    };
    addClaims(state, this.#owners, mayAsk, add, (next, number, verb) => this.#send(next, number, verb));
    await this.#addAsking(state, steps);
    await this.#addArrivals(state, steps);
    for (const [at, reply] of state.replies.entries()) {
      add(`${this.#name(reply[0])} hears of its ${reply[1]}`, false, (next) => {
        next.replies.splice(at, 1);
        return hear(next, reply, !this.#off.has("reclaim"));
      });
    }
    if (state.isPromoted === 0) {
      if (state.backlog.length > 0) {
        add("the replica gets the next write", false, (next) => {
          next.held[1] = next.backlog.shift() as Held;
        });
      }
      add("the replica is promoted, and the master is gone", true, (next) => {
        next.isPromoted = 1;
        next.backlog = [];
      });
    }
    for (const [client, { home }] of state.clients.entries()) {
      if (state.isPromoted === 1 && home === 0) {
        add(`${LETTERS[client]} is led to the new master`, this.#off.has("old-master-stops"), (next) => {
          const moved = next.clients[client] as ClientState;
          moved.home = 1;
          moved.view = "unasked";
          // Pending loads for the old server are lost with it.
          moved.teach = 0;
        });
      }
      if (state.left.deaf > 0 && state.isPromoted === 0) {
        add(`${LETTERS[client]} is away from its inbox for the next hand-off`, true, (next) => {
          next.left.deaf -= 1;
          (next.clients[client] as ClientState).deaf = 1;
        });
      }
    }
    const isUnderWay = state.claims.some(({ call }) => call === 1);
    if (!isUnderWay || state.left.delays > 0) {
      add(isUnderWay ? "a tick passes, with messages under way" : "a tick passes", isUnderWay, (next) => {
        if (isUnderWay) next.left.delays -= 1;
        tick(next);
      });
    }
    return steps;
  }

  /**
   * A client queries its server about itself, or loads a script. The reply comes immediately; only the request before
   * may be late.
   */
  async #addAsking(state: State, steps: Step<State>[]): Promise<void> {
    for (const [client, { home, view, teach }] of state.clients.entries()) {
      const wants = this.#owners.some((owner, i) => owner.client === client && state.claims[i]?.ph === "ask");
      if (!wants || !this.#isUp(state, home)) continue;
      const letter = LETTERS[client] as string;
      if (teach === 2) {
        const next = copyOf(state);
        next.knows[home] = 1;
        (next.clients[client] as ClientState).teach = this.#off.has("ask-first") ? 0 : 3;
        steps.push({ label: `${letter} loads its script on the server`, next, isFault: false, violation: undefined });
        continue;
      }
      if (view === "settled" && teach === 0) continue;
      const next = copyOf(state);
      const nowMs = Math.floor(state.t / 1_000);
      const call: Call = { script: "server/lineage", keys: [MARKER], args: [LEASE_MS, 0] };
      const held = shifted(state.held[home], nowMs);
      const outcome = await this.#servers[home].run(held, state.t, [], call);
      write(next, home, shifted(outcome.held, -nowMs));
      const isSettled = (outcome.reply as readonly number[])[0] === 0;
      const asker = next.clients[client] as ClientState;
      asker.view = isSettled ? "settled" : "quiet";
      asker.teach = !isSettled || teach !== 1 ? 0 : 2;
      const what = isSettled ? "and it may grant" : "and it may not grant";
      if (this.text(structuredClone(next)) !== this.text(copyOf(state))) {
        steps.push({
          label: `${letter} asks its server about itself, ${what}`,
          next,
          isFault: false,
          violation: undefined,
        });
      }
    }
  }

  async #addArrivals(state: State, steps: Step<State>[]): Promise<void> {
    for (const [at, request] of state.requests.entries()) {
      const [number, verb, age] = request;
      const { client } = this.#owners[number] as { client: number };
      const { home } = state.clients[client] as ClientState;
      const lost = copyOf(state);
      if (state.isPromoted === 1) {
        lost.requests.splice(at, 1);
        giveUp(lost, request);
        steps.push({
          label: `the ${verb} of ${this.#name(number)} is lost`,
          next: lost,
          isFault: true,
          violation: undefined,
        });
      }
      if (!this.#isUp(state, home)) continue;
      const isUnknown = verb === "acquire" && !(await this.#isKnown(state, home, request));
      if (isUnknown) {
        const next = copyOf(state);
        next.requests.splice(at, 1);
        (next.claims[number] as ClaimState).call = 0;
        (next.clients[client] as ClientState).teach = this.#off.has("ask-first") ? 2 : 1;
        steps.push({
          label: `the acquire of ${this.#name(number)} is not known there`,
          next,
          isFault: false,
          violation: undefined,
        });
        continue;
      }
      const listening = state.clients.flatMap(({ deaf }, i) => (deaf === 1 ? [] : [`${INBOX}${LETTERS[i]}`]));
      const outcome = await this.#run(state, home, listening, request);
      for (const isCopied of [false, true]) {
        if (isCopied && (state.left.copies === 0 || home === 1)) continue;
        const next = copyOf(state);
        if (isCopied) next.left.copies -= 1;
        else next.requests.splice(at, 1);
        write(next, home, outcome.held);
        for (const [channel, message] of outcome.told) {
          const [nth, token] = message.slice(1).split(" ");
          const waiter = this.#owners.findIndex(({ owner }, i) => {
            const isThere = owner.startsWith(`${channel.slice(INBOX.length)}/${nth}/`);
            return isThere && state.claims[i]?.ph === "ask";
          });
          // A grant to an ended claim is passed on by its client with a leave, which is a later step.
          if (waiter >= 0) next.replies.push([waiter, "grant", 0, Number(token)]);
        }
        if (verb === "release" || verb === "leave") for (const each of next.clients) each.deaf = 0;
        next.t += 1;
        // For a resent request, only the second reply arrives.
        if (!isCopied) {
          const [code] = typeof outcome.reply === "number" ? [outcome.reply] : outcome.reply;
          next.replies.push([
            number,
            verb,
            age,
            typeof outcome.reply === "number" || verb !== "acquire" ? Number(code) : -1,
          ]);
        }
        const again = isCopied ? ", and will be sent again" : "";
        const where = home === 0 ? "on the old master" : "on the new one";
        steps.push({
          label: `${verb} of ${this.#name(number)} runs ${where}${again}`,
          next,
          isFault: isCopied,
          violation: undefined,
        });
      }
    }
  }

  /** If scripts are shared, a request names the run that was last reported to the client. */
  #send(next: State, number: number, verb: Verb): void {
    const { client } = this.#owners[number] as Owner;
    sent(next, number, verb, ...(this.#sharesScripts ? [(next.clients[client] as ClientState).home] : []));
  }

  /** Whether the server knows the script of a request that may grant. */
  async #isKnown(state: State, home: 0 | 1, request: Message): Promise<boolean> {
    if (state.knows[home] === 0) return false;
    const [number, verb, , token, meantFor] = request;
    if (meantFor === undefined) return true;
    const call = mutexKind.call(verb as "acquire", (this.#owners[number] as Owner).owner, 1, token, true);
    try {
      await this.#servers[home].run(state.held[home], state.t, [], { ...call, script: `${call.script}@${meantFor}` });
      return true;
    } catch (error) {
      if (String(error).includes("NOSCRIPT")) return false;
      throw error;
    }
  }

  async #run(state: State, home: 0 | 1, listening: readonly string[], request: Message): Promise<Outcome> {
    const [number, verb, , token, meantFor] = request;
    const { client, owner } = this.#owners[number] as Owner;
    let call: Call;
    if (verb === "reclaim")
      call = { script: "mutex/reclaim", keys: ["l", "f", "q", HANDED, MARKER], args: [owner, token, LEASE_MS] };
    else if (verb === "grant") throw new Error("a grant is not a request");
    else call = mutexKind.call(verb, owner, 1, token, true);
    const isEnd = verb === "release" || verb === "leave";
    if (isEnd && !(await this.#isKnown(state, home, request)) && !this.#off.has("no-hand-off")) {
      const isSettled = meantFor !== undefined && (state.clients[client] as ClientState).view === "settled";
      call = { ...call, script: `${call.script}${isSettled ? `@${home}` : "/quiet"}` };
    } else if (meantFor !== undefined && (isEnd || verb === "acquire")) {
      call = { ...call, script: `${call.script}@${meantFor}` };
    }
    return this.#servers[home].run(state.held[home], state.t, listening, call);
  }

  #isUp(state: State, server: 0 | 1): boolean {
    return server === 1 || state.isPromoted === 0 || this.#off.has("old-master-stops");
  }

  #name(number: number): string {
    return nameOf(this.#owners, number);
  }
}

/** A copy that can be changed. */
function copyOf(state: State): State {
  return {
    ...copyOfClaims(state),
    held: [...state.held],
    backlog: [...state.backlog],
    knows: [...state.knows],
    clients: state.clients.map((client) => ({ ...client })),
  };
}

function write(next: State, server: 0 | 1, held: Held): void {
  if (JSON.stringify(held) === JSON.stringify(next.held[server])) return;
  next.held[server] = held;
  if (server === 1 || next.isPromoted === 1) return;
  next.backlog.push(held);
  if (next.backlog.length > MOST_BEHIND) next.held[1] = next.backlog.shift() as Held;
}

function tick(next: State): void {
  next.t = nextTick(next.t);
  next.held = [heldAfterTick(next.held[0]), heldAfterTick(next.held[1])];
  next.backlog = next.backlog.map(heldAfterTick);
  claimsAge(next);
}

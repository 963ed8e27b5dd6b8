/**
 * A few clients on one lock, and a network that loses, delays and repeats.
 *
 * The server is the real one. The clients are what core does, without its timers: whatever a timer would do at some
 * moment may be done at any moment from then on, which is what a paused process does. A client judges its lease in
 * whole ticks.
 */
import { canonical, LEASE_TICKS, START_US } from "./canonical.js";
import type { Step, World } from "./explore.js";
import { isValid, LockClients, type Place } from "./lock-client.js";
import { INBOX, type LockKind } from "./lock-kinds.js";
import { atRest, brokenInState, brokenOnServer } from "./lock-properties.js";
import {
  type Budget,
  type Claim,
  type ClientRule,
  idleClaim,
  type LockState,
  type Reply,
  type Request,
} from "./lock-state.js";
import type { Server } from "./server.js";

/** A world of claims. */
export interface LockSetting {
  readonly kind: LockKind;
  /** For each client the weights of its claims, one claim after the other. */
  readonly clients: readonly (readonly number[])[];
  /** Whether a claim waits in the queue, or asks again now and then. */
  readonly enqueue: boolean;
  readonly budget: Partial<Budget>;
  /** Whether the server's clock stands still within a tick, so that moments repeat. */
  readonly clockStands?: boolean;
}

const LETTERS = "abcd";
const NOTHING: Budget = { delays: 2, timeouts: 0, copies: 0, pushes: 0, crashes: 0, giveUps: 0, renewals: 0 };

/** See the file header. */
export class LockWorld implements World<LockState> {
  readonly initial: LockState;
  readonly setting: LockSetting;
  readonly places: readonly Place[];
  readonly #server: Server;
  readonly #clients: LockClients;
  readonly #off: ReadonlySet<ClientRule>;

  /** @param off  rules of the client that do not hold in this world */
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    this.setting = setting;
    this.#server = server;
    this.#off = new Set(off);
    let number = 0;
    this.places = setting.clients.flatMap((weights, client) =>
      weights.map((weight, nth) => {
        const shown = this.#off.has("fresh-claim") ? number++ - nth : number++;
        return { client, weight, owner: `${LETTERS[client]}/${shown}/1500/${weight}` };
      }),
    );
    this.#clients = new LockClients(this.places, this.#off);
    this.initial = {
      t: START_US,
      held: [],
      claims: this.places.map(idleClaim),
      requests: [],
      replies: [],
      pushes: [],
      budget: { ...NOTHING, ...setting.budget },
      dead: [],
      late: 0,
    };
  }

  text(state: LockState): string {
    state.requests.sort(byText);
    state.replies.sort(byText);
    state.pushes.sort(byText);
    return canonical(JSON.stringify(state), state.t);
  }

  parse(text: string): LockState {
    return JSON.parse(text);
  }

  isGood(state: LockState): boolean {
    return state.claims.every(({ ph }) => ph === "end" || ph === "dead");
  }

  violation(state: LockState): string | undefined {
    return brokenInState(this, state, !this.#off.has("own-clock")) ?? atRest(this, state);
  }

  async steps(state: LockState): Promise<readonly Step<LockState>[]> {
    const steps: Step<LockState>[] = [];
    const add = (label: string, isFault: boolean, change: Change): void => {
      const next = structuredCopy(state);
      const outcome = change(next);
      const violation = typeof outcome === "string" ? outcome : undefined;
      steps.push({ label, next, isFault, violation });
    };
    this.#addClientSteps(state, add);
    this.#addNetworkSteps(state, add);
    await this.#addDeliveries(state, steps);
    // Messages arrive within the tick, but for so many ticks: two are enough to outlive the lease they are about.
    const isUnderWay = state.claims.some(({ call }) => call === 1) || state.pushes.length > 0;
    if (!isUnderWay) {
      add("a tick passes", false, (next) => this.#clients.tick(next));
    } else if (state.budget.delays > 0) {
      add("a tick passes, with messages under way", true, (next) => {
        next.budget.delays -= 1;
        this.#clients.tick(next);
      });
    }
    return steps;
  }

  listening(state: LockState): string[] {
    return this.setting.clients.flatMap((_, client) => (state.dead.includes(client) ? [] : [`${LETTERS[client]}`]));
  }

  #name(number: number): string {
    const { client, owner } = this.places[number] as { client: number; owner: string };
    return `${LETTERS[client]}${owner.split("/")[1]}`;
  }

  #addClientSteps(state: LockState, add: Add): void {
    for (const [number, claim] of state.claims.entries()) {
      const name = this.#name(number);
      switch (claim.ph) {
        case "idle":
          if (this.#mayBegin(state, number)) add(`${name} asks`, false, (next) => this.#clients.begin(next, number));
          break;
        case "ask":
          if (claim.call === 0 && this.#clients.isToAsk(claim)) {
            add(`${name} asks again`, false, (next) => this.#clients.send(next, number, "acquire"));
          }
          if (state.budget.giveUps > 0) {
            add(`${name} gives up`, true, (next) => {
              next.budget.giveUps -= 1;
              this.#clients.giveUp(next, number);
            });
          }
          break;
        case "held":
          if (claim.call === 0 && claim.set >= 1 && isValid(claim) && state.budget.renewals > 0) {
            add(`${name} renews`, true, (next) => {
              next.budget.renewals -= 1;
              this.#clients.send(next, number, "extend");
            });
          }
          add(`${name} ${isValid(claim) ? "releases" : "finds its lease over"}`, false, (next) =>
            this.#clients.letGo(next, number),
          );
          break;
        case "rel":
          if (claim.call === 0) {
            add(`${name} releases again`, false, (next) => this.#clients.send(next, number, "release"));
            add(`${name} stops releasing, and leaves`, false, (next) => this.#clients.depart(next, number, 1));
          }
          break;
        case "dep":
          if (claim.call === 0 && claim.aa === 1) {
            add(`${name} leaves again`, false, (next) => this.#clients.send(next, number, "leave"));
          }
          break;
        default:
      }
    }
    for (const client of this.setting.clients.keys()) {
      if (state.budget.crashes > 0 && !state.dead.includes(client) && this.#isBusy(state, client)) {
        add(`process ${LETTERS[client]} dies`, true, (next) => this.#clients.crash(next, client));
      }
    }
  }

  #addNetworkSteps(state: LockState, add: Add): void {
    for (const [number, claim] of state.claims.entries()) {
      if (claim.call === 0 || state.budget.timeouts === 0) continue;
      add(`${this.#name(number)} gets no answer in time`, true, (next) => {
        next.budget.timeouts -= 1;
        this.#clients.failed(next, number);
      });
    }
    for (const [at, [number, code, slow, age]] of state.replies.entries()) {
      const shown = code >= START_US / 2 ? `token ${rankOf(state, code)}` : String(code);
      add(`${this.#name(number)} is answered ${shown}`, false, (next) => {
        next.replies.splice(at, 1);
        return this.#clients.answered(next, number, code, slow, age);
      });
    }
    for (const [at, push] of state.pushes.entries()) {
      const shown = `the grant ${rankOf(state, push[1])} to ${this.#name(push[0])}`;
      add(`${shown} arrives`, false, (next) => {
        next.pushes.splice(at, 1);
        return this.#clients.pushed(next, push);
      });
      if (state.budget.pushes > 0) {
        add(`${shown} is lost`, true, (next) => {
          next.budget.pushes -= 1;
          next.pushes.splice(at, 1);
        });
      }
    }
  }

  async #addDeliveries(state: LockState, steps: Step<LockState>[]): Promise<void> {
    const listening = this.listening(state);
    for (const [at, [number, verb, token, orphan]] of state.requests.entries()) {
      const { owner, weight } = this.places[number] as { owner: string; weight: number };
      const call = this.setting.kind.call(verb, owner, weight, token, this.setting.enqueue);
      const channels = listening.map((client) => INBOX + client);
      const outcome = await this.#server.run(state.held, state.t, channels, call);
      const [code, second] = typeof outcome.reply === "number" ? [outcome.reply] : outcome.reply;
      for (const isCopied of [false, true]) {
        if (isCopied && (state.budget.copies === 0 || orphan !== 0)) continue;
        const next = structuredCopy(state);
        if (isCopied) {
          next.budget.copies -= 1;
          // The client has lost its connection, and sent it again: it knows that it may run twice.
          const claim = next.claims[number] as Claim;
          if (verb === "release") claim.may = 1;
          if (verb === "leave") claim.un = 1;
          (next.requests[at] as Request)[3] = 2;
        } else {
          next.requests.splice(at, 1);
        }
        const of = state.claims[number] as Claim;
        const isOutlived = orphan === 2 || (orphan === 1 && of.ph === "dep" && of.dep >= LEASE_TICKS);
        if (isOutlived && verb === "acquire") next.late = 1;
        if (orphan === 0) {
          const isWait = verb === "acquire" && code !== 2 && typeof outcome.reply !== "number";
          const slow = isWait ? Math.min(1, state.claims[number]?.sent ?? 0) : 0;
          const reply: Reply = [number, Number(code === 2 && verb === "acquire" ? second : code), slow, 0];
          if (isWait) this.#outdate(next, number);
          next.replies.push(reply);
        }
        next.held = outcome.held;
        for (const [channel, message] of outcome.told) {
          const [to, granted] = message.slice(1).split(" ").map(Number);
          const target = this.#recipient(channel.slice(INBOX.length), to ?? -1, state);
          if (target >= 0) next.pushes.push([target, granted ?? 0, 0, 0]);
        }
        const violation = brokenOnServer(this, state, next.held, owner, verb, listening);
        if (this.setting.clockStands !== true) next.t += 1;
        const how = orphan === 0 ? "" : orphan === 1 ? " (late)" : " (second copy)";
        const copied = isCopied ? ", and will arrive once more" : "";
        steps.push({
          label: `${verb} of ${this.#name(number)} runs${how}${copied}`,
          next,
          isFault: isCopied,
          violation,
        });
      }
    }
  }

  /** The server says "wait" at a time that is later than that of the grants under way. */
  #outdate(next: LockState, number: number): void {
    for (const push of next.pushes) {
      if (push[0] === number && push[2] === 0 && (this.setting.clockStands !== true || push[3] > 0)) push[2] = 1;
    }
  }

  /** The claim that a message to a client's inbox is for; the present one if several share a number. */
  #recipient(client: string, shown: number, state: LockState): number {
    const named = this.places.flatMap(({ owner }, number) => (owner.startsWith(`${client}/${shown}/`) ? [number] : []));
    return named.findLast((number) => state.claims[number]?.ph !== "idle") ?? -1;
  }

  #mayBegin(state: LockState, number: number): boolean {
    const { client } = this.places[number] as { client: number };
    if (state.dead.includes(client)) return false;
    // Clients that are alike begin in one order: the others would be the same with other names.
    const before = this.places.findLastIndex((place) => place.client < client);
    const first = this.places.findIndex((place) => place.client === this.places[before]?.client);
    const areAlike = JSON.stringify(this.setting.clients[client]) === JSON.stringify(this.setting.clients[client - 1]);
    if (areAlike && first >= 0 && state.claims[first]?.ph === "idle") return false;
    return this.places.every(
      (place, other) =>
        place.client !== client || other >= number || ["dep", "end"].includes(state.claims[other]?.ph ?? "idle"),
    );
  }

  #isBusy(state: LockState, client: number): boolean {
    return this.places.some(
      (place, number) => place.client === client && !["idle", "end"].includes(state.claims[number]?.ph ?? "idle"),
    );
  }
}

/** Changes the state, and says what that broke, if it is a text. */
type Change = (next: LockState) => unknown;
type Add = (label: string, isFault: boolean, change: Change) => void;

function structuredCopy(state: LockState): LockState {
  return {
    ...state,
    claims: state.claims.map((claim) => ({ ...claim })),
    requests: state.requests.map((request) => [...request]),
    replies: state.replies.map((reply) => [...reply]),
    pushes: state.pushes.map((push) => [...push]),
    budget: { ...state.budget },
    dead: [...state.dead],
  };
}

function byText(left: readonly unknown[], right: readonly unknown[]): number {
  const [a, b] = [left.join(), right.join()];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Which of the tokens in sight it is, for people. */
function rankOf(state: LockState, token: number): string {
  const tokens = [...new Set([...state.claims.map(({ tok }) => tok), token, ...state.pushes.map((push) => push[1])])];
  return `#${tokens.filter((other) => other > 0 && other <= token).length}`;
}

/**
 * A few clients on one lock, and a network that loses, delays and repeats messages.
 *
 * The server runs the real scripts. The clients follow core's rules without its timers: what a timer would do at some
 * instant may happen at any later time, as in a paused process. A client judges its lease in whole ticks. Worlds of
 * one kind add the additional operations of that kind.
 */
import { canonical, HAND_OFF_MS, LEASE_TICKS, START_US } from "./canonical.js";
import { addDeliveries } from "./deliveries.js";
import { decode, encode, NO_FAULTS } from "./encoding.js";
import type { Step, World } from "./explore.js";
import type { LockClients } from "./lock-client.js";
import { INBOX, ownerOf } from "./lock-kinds.js";
import { atRest, brokenInState, brokenOnServer } from "./lock-properties.js";
import { type Add, LETTERS, type LockSetting } from "./lock-setting.js";
import { byText, type Claim, type ClientRule, copyOf, type LockState, type Reply, type Request } from "./lock-state.js";
import { addNetworkSteps } from "./network-steps.js";
import { isFrozen, isValid, type Place } from "./place.js";
import { addProcessSteps } from "./process-steps.js";
import { accountOfPlaces, lastsTooLong } from "./provisional.js";
import type { Call, Held, Outcome, Server } from "./server.js";
import { alikeFirst } from "./symmetry.js";

/** The number of tokens that a retainable claim reserves. By this number, scripts recognize such claims. */
const RETAINED_TOKENS = 31;
/** How long a queue is kept after the last request, in ms. */
const QUEUE_MS = 60_000;

/** The world of claims on a lock. */
export class LockWorld<Clients extends LockClients = LockClients> implements World<LockState> {
  readonly initial: LockState;
  readonly setting: LockSetting;
  readonly places: readonly Place[];
  readonly clients: Clients;
  protected readonly off: ReadonlySet<ClientRule>;
  readonly #server: Server;

  /**
   * @param off  rules of the client that are switched off in this world
   * @param make  creates the clients of this kind
   */
  constructor(
    setting: LockSetting,
    server: Server,
    off: readonly ClientRule[],
    make: (places: readonly Place[], off: ReadonlySet<ClientRule>) => Clients,
  ) {
    this.setting = setting;
    this.#server = server;
    this.off = new Set(off);
    let number = 0;
    this.places = setting.clients.flatMap((weights, client) =>
      weights.map((weight, nth) => {
        const shown = this.off.has("fresh-claim") ? number++ - nth : number++;
        const role = setting.roles?.[client]?.[nth] ?? "plain";
        const protocol = setting.protocols?.[client] ?? 1;
        const amount = role === "retain" ? RETAINED_TOKENS : weight;
        return { client, weight, role, protocol, owner: ownerOf(LETTERS[client] ?? "", shown, amount, protocol) };
      }),
    );
    this.clients = make(this.places, this.off);
    this.initial = {
      t: START_US,
      held: [],
      claims: this.places.map((place) => this.clients.idle(place)),
      requests: [],
      replies: [],
      pushes: [],
      budget: { ...NO_FAULTS, ...setting.budget },
      dead: [],
      deaf: [],
      frozen: [],
      due: [],
      gone: [],
      paid: [],
      late: 0,
    };
    this.#begin();
  }

  #begin(): void {
    const { begins, kind } = this.setting;
    const token = START_US - 1;
    if (begins === "gone" || begins === "queued") {
      this.initial.held = kind.heldBy(ownerOf("z", 0, 1), token, HAND_OFF_MS);
    }
    if (begins === "queued") {
      const queue = this.places.flatMap(({ owner }, number) => [owner, String(number + 1)]);
      this.initial.held = [...this.initial.held, ["q", "zset", queue, QUEUE_MS] as const].sort(byText);
      for (const claim of this.initial.claims) Object.assign(claim, { ph: "ask", q: 1, s: [0, 0], fl: token });
    }
    if (begins !== "handed") return;
    const { owner, client } = this.places[0] as Place;
    this.initial.held = kind.heldBy(owner, token, HAND_OFF_MS, LETTERS[client]);
    this.initial.due = [0];
    Object.assign(this.initial.claims[0] ?? {}, { ph: "held", tok: token, set: LEASE_TICKS - 1, pv: 1 });
  }

  text(state: LockState): string {
    const shown = this.setting.isSymmetric === true ? alikeFirst(this, state) : state;
    shown.requests.sort(byText);
    shown.replies.sort(byText);
    shown.pushes.sort(byText);
    shown.paid.sort(byText);
    return canonical(encode(shown), shown.t);
  }

  parse(text: string): LockState {
    return decode(text);
  }

  isGood(state: LockState): boolean {
    // Without time, no wait can last forever.
    if (this.setting.isTimeless === true) return true;
    return state.claims.every(({ ph }) => ph === "end" || ph === "dead");
  }

  violation(state: LockState): string | undefined {
    return brokenInState(this, state, !this.off.has("own-clock")) ?? atRest(this, state);
  }

  async steps(state: LockState): Promise<readonly Step<LockState>[]> {
    const steps: Step<LockState>[] = [];
    const add: Add = (label, isFault, change) => {
      const next = copyOf(state);
      const outcome = change(next);
      const violation = typeof outcome === "string" ? outcome : undefined;
      steps.push({ label, next, isFault, violation });
    };
    this.addClientSteps(state, add);
    addNetworkSteps(this, state, add);
    await addDeliveries(this, this.#server, state, steps);
    // Messages arrive within the tick, except for a limited number of ticks: two are enough to outlive the lease that
    // they are about.
    if (this.setting.isTimeless === true) return steps;
    if (!this.#isUnderWay(state)) {
      add("a tick passes", false, (next) => this.#tick(next));
    } else if (state.budget.delays > 0) {
      add("a tick passes, with messages under way", true, (next) => {
        next.budget.delays -= 1;
        return this.#tick(next);
      });
    }
    return steps;
  }

  #tick(next: LockState): string | undefined {
    const due = [...next.due];
    this.clients.tick(next);
    return lastsTooLong(this, next, due);
  }

  /** Whether a message is in flight to a process that is not frozen. */
  #isUnderWay(state: LockState): boolean {
    const isReached = (number: number): boolean => !isFrozen(state, this.places[number]);
    if (state.pushes.some(([to]) => isReached(to))) return true;
    if (state.requests.some(([number, , , orphan]) => orphan === 0 && !isReached(number))) return true;
    return state.claims.some(({ call, side }, number) => isReached(number) && (call === 1 || side?.renewal));
  }

  /** The channels that currently have a subscriber. */
  listening(state: LockState): string[] {
    const hears = (client: number): boolean => !state.dead.includes(client) && !state.deaf.includes(client);
    return this.setting.clients.flatMap((_, client) => (hears(client) ? [`${INBOX}${LETTERS[client]}`] : []));
  }

  /** How much of the lock the claim believes that it holds. */
  believed(state: LockState, number: number): number {
    return state.claims[number]?.ph === "held" ? (this.places[number]?.weight ?? 0) : 0;
  }

  /** The name of a claim, for display. */
  name(number: number): string {
    const { client, owner } = this.places[number] as { client: number; owner: string };
    return `${LETTERS[client]}${owner.split("/")[1]}`;
  }

  /** The script call of a request. */
  callOf([number, verb, token]: Request, _state?: LockState): Call {
    const { owner, weight } = this.places[number] as Place;
    return this.setting.kind.call(verb, owner, weight, token, this.setting.enqueue);
  }

  /** Whether it replies "wait", and from when on: such a reply is a sample of the server's clock. */
  isWait([, verb]: Request, { reply }: Outcome): boolean {
    return verb === "acquire" && typeof reply !== "number" && reply[0] !== 2;
  }

  /** The reply as its client receives it. */
  replyOf([number, verb]: Request, { reply }: Outcome, slow: number): Reply {
    const [code, second] = typeof reply === "number" ? [reply] : reply;
    // The reply names the grants that were refused.
    if (verb === "confirm" && typeof reply !== "number") return [number, reply.length > 1 ? 3 : 1, slow, 0];
    return [number, Number(code === 2 && verb === "acquire" ? second : code), slow, 0];
  }

  /** Implements `Receiving.followedBy`. */
  followedBy(_request: Request, _outcome: Outcome): Request | undefined {
    return undefined;
  }

  /** Implements `Receiving.copied`. */
  copied(_claim: Claim, _verb: Request[1]): void {}

  /** The rules that a script violated on the server. May change `next` for bookkeeping. */
  broken(before: LockState, next: LockState, request: Request, outcome: Outcome, after: Held): string | undefined {
    const [number, verb] = request;
    const { owner } = this.places[number] as Place;
    const listening = this.listening(next);
    return (
      brokenOnServer(this, before, after, owner, verb, listening) ??
      accountOfPlaces(this, before, next, request, outcome, listening)
    );
  }

  /** The possible operations of claims. */
  protected addClientSteps(state: LockState, add: Add): void {
    for (const [number, claim] of state.claims.entries()) {
      if (isFrozen(state, this.places[number])) continue;
      const name = this.name(number);
      switch (claim.ph) {
        case "idle":
          if (this.mayBegin(state, number)) add(`${name} asks`, false, (next) => this.clients.begin(next, number));
          break;
        case "ask":
          if (claim.call === 0 && this.clients.isToAsk(claim)) {
            add(`${name} asks again`, false, (next) => this.clients.send(next, number, "acquire"));
          }
          this.#addGivingUp(state, number, name, add);
          break;
        case "conf":
          this.#addGivingUp(state, number, name, add);
          break;
        case "held":
          this.addHolderSteps(state, number, name, add);
          break;
        case "rel":
          if (claim.call === 0) {
            add(`${name} releases again`, false, (next) => this.clients.send(next, number, "release"));
            add(`${name} stops releasing, and leaves`, false, (next) => this.clients.depart(next, number, 1));
          }
          break;
        case "dep":
          if (claim.call === 0 && claim.aa === 1) {
            add(`${name} leaves again`, false, (next) => this.clients.send(next, number, "leave"));
          }
          break;
        default:
      }
    }
    addProcessSteps(this, state, add);
  }

  #addGivingUp(state: LockState, number: number, name: string, add: Add): void {
    if (state.budget.giveUps === 0) return;
    add(`${name} gives up`, true, (next) => {
      next.budget.giveUps -= 1;
      this.clients.giveUp(next, number);
    });
  }

  /** A holder requests its full lease. */
  protected addConfirmation(state: LockState, number: number, name: string, add: Add): void {
    const claim = state.claims[number];
    // A claim sends one request at a time, and an unanswered signal comes first.
    if (claim?.pv !== 1 || claim.call === 1 || !isValid(claim) || claim.wait?.sig === 1) return;
    add(`${name} confirms`, false, (next) => this.clients.send(next, number, "extend"));
  }

  /** The possible operations of a holder. */
  protected addHolderSteps(state: LockState, number: number, name: string, add: Add): void {
    const claim = state.claims[number];
    if (claim === undefined) return;
    this.addConfirmation(state, number, name, add);
    const isFresh = claim.set === (claim.pv === 1 ? LEASE_TICKS - 1 : 0);
    if (this.setting.hasBatches === true && isFresh && state.budget.entries > 0) {
      add(`${name} goes on with the next caller of its batch`, true, (next) => this.clients.passOn(next, number));
    }
    if (claim.call === 0 && claim.set >= 1 && claim.pv === 0 && isValid(claim) && state.budget.renewals > 0) {
      add(`${name} renews`, true, (next) => {
        next.budget.renewals -= 1;
        this.clients.send(next, number, "extend");
      });
    }
    if (this.setting.answersFirst === true && claim.call === 1) return;
    add(`${name} ${isValid(claim) ? "releases" : "finds its lease over"}`, false, (next) =>
      this.clients.letGo(next, number),
    );
  }

  /** Whether the claim may begin: by default one after another in each client. */
  protected mayBegin(state: LockState, number: number): boolean {
    const { client } = this.places[number] as Place;
    if (state.dead.includes(client)) return false;
    // Equivalent clients begin in a fixed order, because other orders only differ in names.
    const first = this.places.findIndex((place) => place.client === client - 1);
    if (this.areAlike(client, client - 1) && first >= 0 && state.claims[first]?.ph === "idle") return false;
    if (this.setting.parallel?.includes(client) === true) {
      // Equivalent claims begin in a fixed order.
      return this.places.every(
        (place, other) => place.client !== client || other >= number || state.claims[other]?.ph !== "idle",
      );
    }
    return this.places.every(
      (place, other) =>
        place.client !== client || other >= number || ["dep", "end"].includes(state.claims[other]?.ph ?? "idle"),
    );
  }

  /** Whether two clients do the same. */
  areAlike(one: number, other: number): boolean {
    const { clients, roles, protocols, parallel } = this.setting;
    const what = (client: number): string =>
      JSON.stringify([clients[client], roles?.[client], protocols?.[client] ?? 1, parallel?.includes(client) === true]);
    return what(one) === what(other);
  }
}

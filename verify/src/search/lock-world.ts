/**
 * A few clients on one lock, and a network that loses, delays and repeats.
 *
 * The server is the real one. The clients are what core does, without its timers: whatever a timer would do at some
 * moment may be done at any moment from then on, which is what a paused process does. A client judges its lease in
 * whole ticks. Worlds of one kind add what this kind does beside asking, holding and giving back.
 */
import { canonical, START_US } from "./canonical.js";
import { addDeliveries } from "./deliveries.js";
import { decode, encode, NO_FAULTS } from "./encoding.js";
import type { Step, World } from "./explore.js";
import type { LockClients } from "./lock-client.js";
import { INBOX } from "./lock-kinds.js";
import { atRest, brokenInState, brokenOnServer } from "./lock-properties.js";
import { type Add, LETTERS, type LockSetting } from "./lock-setting.js";
import { byText, type ClientRule, copyOf, type LockState, type Reply, type Request } from "./lock-state.js";
import { addNetworkSteps } from "./network-steps.js";
import { isValid, type Place } from "./place.js";
import { addProcessSteps } from "./process-steps.js";
import type { Call, Held, Outcome, Server } from "./server.js";
import { alikeFirst } from "./symmetry.js";

/** See the file header. */
export class LockWorld<Clients extends LockClients = LockClients> implements World<LockState> {
  readonly initial: LockState;
  readonly setting: LockSetting;
  readonly places: readonly Place[];
  readonly clients: Clients;
  protected readonly off: ReadonlySet<ClientRule>;
  readonly #server: Server;

  /**
   * @param off  rules of the client that do not hold in this world
   * @param make  how clients of this kind are made
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
        return { client, weight, role, owner: `${LETTERS[client]}/${shown}/1500/${weight}` };
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
      late: 0,
    };
  }

  text(state: LockState): string {
    const shown = this.setting.isSymmetric === true ? alikeFirst(this, state) : state;
    shown.requests.sort(byText);
    shown.replies.sort(byText);
    shown.pushes.sort(byText);
    return canonical(encode(shown), shown.t);
  }

  parse(text: string): LockState {
    return decode(text);
  }

  isGood(state: LockState): boolean {
    // Without time nobody can be waiting for ever.
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
    // Messages arrive within the tick, but for so many ticks: two are enough to outlive the lease they are about.
    if (this.setting.isTimeless === true) return steps;
    const isUnderWay = state.pushes.length > 0 || state.claims.some(({ call, side }) => call === 1 || side?.renewal);
    if (!isUnderWay) {
      add("a tick passes", false, (next) => this.clients.tick(next));
    } else if (state.budget.delays > 0) {
      add("a tick passes, with messages under way", true, (next) => {
        next.budget.delays -= 1;
        this.clients.tick(next);
      });
    }
    return steps;
  }

  /** The channels on which somebody listens now. */
  listening(state: LockState): string[] {
    const hears = (client: number): boolean => !state.dead.includes(client) && !state.deaf.includes(client);
    return this.setting.clients.flatMap((_, client) => (hears(client) ? [`${INBOX}${LETTERS[client]}`] : []));
  }

  /** How much of the lock the claim believes to have. */
  believed(state: LockState, number: number): number {
    return state.claims[number]?.ph === "held" ? (this.places[number]?.weight ?? 0) : 0;
  }

  /** What a claim is called, for people. */
  name(number: number): string {
    const { client, owner } = this.places[number] as { client: number; owner: string };
    return `${LETTERS[client]}${owner.split("/")[1]}`;
  }

  /** The call that a request is. */
  callOf([number, verb, token]: Request): Call {
    const { owner, weight } = this.places[number] as Place;
    return this.setting.kind.call(verb, owner, weight, token, this.setting.enqueue);
  }

  /** Whether it says "wait", and from when on: such an answer is a sample of the server's clock. */
  isWait([, verb]: Request, { reply }: Outcome): boolean {
    return verb === "acquire" && typeof reply !== "number" && reply[0] !== 2;
  }

  /** The answer as its client gets it. */
  replyOf([number, verb]: Request, { reply }: Outcome, slow: number): Reply {
    const [code, second] = typeof reply === "number" ? [reply] : reply;
    return [number, Number(code === 2 && verb === "acquire" ? second : code), slow, 0];
  }

  /** What a script broke on the server. `next` may be changed, to keep account. */
  broken(before: LockState, next: LockState, request: Request, _outcome: Outcome, after: Held): string | undefined {
    const [number, verb] = request;
    const { owner } = this.places[number] as Place;
    return brokenOnServer(this, before, after, owner, verb, this.listening(next));
  }

  /** What claims can do now. */
  protected addClientSteps(state: LockState, add: Add): void {
    for (const [number, claim] of state.claims.entries()) {
      const name = this.name(number);
      switch (claim.ph) {
        case "idle":
          if (this.mayBegin(state, number)) add(`${name} asks`, false, (next) => this.clients.begin(next, number));
          break;
        case "ask":
          if (claim.call === 0 && this.clients.isToAsk(claim)) {
            add(`${name} asks again`, false, (next) => this.clients.send(next, number, "acquire"));
          }
          if (state.budget.giveUps > 0) {
            add(`${name} gives up`, true, (next) => {
              next.budget.giveUps -= 1;
              this.clients.giveUp(next, number);
            });
          }
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

  /** What a holder can do. */
  protected addHolderSteps(state: LockState, number: number, name: string, add: Add): void {
    const claim = state.claims[number];
    if (claim === undefined) return;
    if (claim.call === 0 && claim.set >= 1 && isValid(claim) && state.budget.renewals > 0) {
      add(`${name} renews`, true, (next) => {
        next.budget.renewals -= 1;
        this.clients.send(next, number, "extend");
      });
    }
    add(`${name} ${isValid(claim) ? "releases" : "finds its lease over"}`, false, (next) =>
      this.clients.letGo(next, number),
    );
  }

  /** Whether the claim may begin: one after the other in each client, unless it says otherwise. */
  protected mayBegin(state: LockState, number: number): boolean {
    const { client } = this.places[number] as Place;
    if (state.dead.includes(client)) return false;
    // Clients that are alike begin in one order: the others would be the same with other names.
    const first = this.places.findIndex((place) => place.client === client - 1);
    if (this.areAlike(client, client - 1) && first >= 0 && state.claims[first]?.ph === "idle") return false;
    return this.places.every(
      (place, other) =>
        place.client !== client || other >= number || ["dep", "end"].includes(state.claims[other]?.ph ?? "idle"),
    );
  }

  /** Whether two clients do the same. */
  areAlike(one: number, other: number): boolean {
    const { clients, roles } = this.setting;
    const what = (client: number): string => JSON.stringify([clients[client], roles?.[client]]);
    return what(one) === what(other);
  }
}

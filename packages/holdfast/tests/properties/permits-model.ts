/** A sequential model of permits, without a server. The scripts must behave like it. */
import type { Claim } from "../../src/core/protocol.js";

/** A grant in the model. */
export interface ModelGrant {
  readonly claim: Claim;
  weight: number;
  token: number;
  readonly firstToken: number;
  readonly slots: readonly number[];
  endsAtUs: number;
  change: number;
}

/** The model's reply for a claim that does not hold. */
export type Lost = "unclaimed" | "claimed" | "forgotten";

/** The permits of one name. Time advances only with `nowUs`. */
export class PermitsModel {
  nowUs: number;
  capacity: number | undefined;
  /** Every capacity that was ever in force. */
  readonly known: Set<number> = new Set();
  lastToken: number | undefined;
  queue: Claim[] = [];
  /** Messages to clients since the last comparison. */
  messages: string[] = [];
  /** Owners of the last claims that stole everything, as the server stores them. */
  #steals = "";
  readonly #grants = new Map<string, ModelGrant>();
  readonly #listens: (claim: Claim) => boolean;
  readonly #numbered: number;

  constructor(nowUs: number, numbered: number, listens: (claim: Claim) => boolean) {
    this.nowUs = nowUs;
    this.#numbered = numbered;
    this.#listens = listens;
  }

  /** Grants whose leases have not ended, the earliest end first. */
  get grants(): ModelGrant[] {
    for (const [owner, { endsAtUs }] of this.#grants) if (endsAtUs <= this.nowUs) this.#grants.delete(owner);
    return [...this.#grants.values()].sort(
      (a, b) => a.endsAtUs - b.endsAtUs || (a.claim.owner < b.claim.owner ? -1 : 1),
    );
  }

  get used(): number {
    return this.grants.reduce((sum, { weight }) => sum + weight, 0);
  }

  grantOf({ owner }: Claim): ModelGrant | undefined {
    return this.grants.find(({ claim }) => claim.owner === owner);
  }

  acquire(claim: Claim, declared: number, enqueue: boolean): object {
    this.capacity ??= declared;
    const { capacity } = this;
    this.known.add(capacity);
    if (!this.known.has(declared)) return { capacity, declared, permits: undefined };
    const held = this.grantOf(claim);
    if (held !== undefined) {
      held.endsAtUs = Math.max(held.endsAtUs, this.nowUs + claim.leaseMs * 1_000);
      return { outcome: "granted", token: held.token, slots: held.slots };
    }
    if (claim.amount > capacity) {
      const wasEmpty = this.queue.length === 0;
      this.#unqueue(claim);
      if (!wasEmpty) this.grantHeads();
      return { capacity, declared, permits: claim.amount };
    }
    if (this.queue.length === 0 && this.used + claim.amount <= capacity) this.#grant(claim);
    else if (enqueue || (this.queue.length > 0 && this.used < capacity)) {
      if (!this.queue.includes(claim)) this.queue.push(claim);
      this.grantHeads(claim);
      if (!enqueue) this.#unqueue(claim);
    }
    const granted = this.grantOf(claim);
    if (granted !== undefined) return { outcome: "granted", token: granted.token, slots: granted.slots };
    const [first] = this.grants;
    const restMs = first === undefined ? -1 : Math.ceil((first.endsAtUs - this.nowUs) / 1_000);
    return { outcome: enqueue ? "waiting" : "refused", restMs, nowUs: this.nowUs };
  }

  /** Ends all grants, and grants to the claim before the queue. Returns the token; `[0]` if it has stolen before and lost it. */
  steal(claim: Claim): number | [0] {
    this.capacity ??= claim.amount;
    this.known.add(this.capacity);
    const held = this.grantOf(claim);
    if (held !== undefined) {
      held.endsAtUs = Math.max(held.endsAtUs, this.nowUs + claim.leaseMs * 1_000);
      return held.token;
    }
    if (this.#steals.includes(`${claim.owner},`)) {
      this.grantHeads();
      return [0];
    }
    const ended = this.grants;
    this.#grants.clear();
    for (const grant of ended) if (this.#listens(grant.claim)) this.messages.push(`-${grant.claim.number}`);
    this.#steals = `${claim.owner},${this.#steals}`.slice(0, 500);
    return this.#grant(claim).token;
  }

  release(claim: Claim, token: number): "released" | Lost {
    const held = this.#under(claim, token);
    if (held !== undefined) this.#grants.delete(claim.owner);
    this.grantHeads();
    return held === undefined ? this.#whyLost(token) : "released";
  }

  leave(claim: Claim): void {
    this.#unqueue(claim);
    if (this.grantOf(claim) !== undefined) this.#grants.delete(claim.owner);
    this.grantHeads();
  }

  extend(claim: Claim, token: number, leaseMs: number): "extended" | Lost {
    const held = this.#under(claim, token);
    if (held === undefined) return this.#whyLost(token);
    held.endsAtUs = Math.max(held.endsAtUs, this.nowUs + leaseMs * 1_000);
    return "extended";
  }

  adopt(from: Claim, to: Claim, token: number): "adopted" | Lost {
    const held = this.#under(from, token);
    if (held === undefined) return this.#whyLost(token);
    this.#grants.delete(from.owner);
    const endsAtUs = Math.max(held.endsAtUs, this.nowUs + to.leaseMs * 1_000);
    this.#grants.set(to.owner, { ...held, claim: to, endsAtUs, change: 0 });
    return "adopted";
  }

  forceRelease(claim: Claim, token: number): boolean {
    const held = this.grantOf(claim);
    const isMeant = held?.token === token;
    if (isMeant) {
      this.#grants.delete(claim.owner);
      this.lastToken = this.#nextToken();
    }
    this.grantHeads();
    if (isMeant && this.#listens(claim)) this.messages.push(`-${claim.number}`);
    return isMeant;
  }

  resize(capacity: number, declared: number): void {
    this.known.add(this.capacity ?? declared).add(capacity);
    this.capacity = capacity;
    this.grantHeads();
  }

  reweigh(claim: Claim, token: number, weight: number, change: number): number | null | Lost {
    const held = this.#under(claim, token);
    if (held === undefined) {
      this.grantHeads();
      return this.#whyLost(token);
    }
    const more = weight - held.weight;
    if (change < held.change || (more > 0 && this.used + more > (this.capacity ?? 0))) {
      this.grantHeads();
      return null;
    }
    if (more > 0) held.token = this.lastToken = this.#nextToken();
    held.weight = weight;
    held.change = change;
    this.grantHeads();
    return held.token;
  }

  /** Grants to the head of the queue while the head fits. */
  grantHeads(self?: Claim): void {
    const { capacity = 0 } = this;
    while (this.used < capacity) {
      const [head] = this.queue;
      if (head === undefined) return;
      const isThere = head === self || this.#listens(head);
      const fits = this.used + head.amount <= capacity;
      // A disconnected waiter never blocks the queue, even if it does not fit.
      if (head.amount <= capacity && !fits && isThere) return;
      this.queue.shift();
      if (head.amount > capacity) {
        if (this.#listens(head)) this.messages.push(`~${head.number}`);
      } else if (fits && isThere) {
        const { token, slots } = this.#grant(head);
        const numbers = slots.length === 0 ? "" : ` ${slots.join(",")}`;
        if (head !== self) this.messages.push(`+${head.number} ${token} ${this.nowUs}${numbers}`);
      }
    }
  }

  #grant(claim: Claim): ModelGrant {
    const token = this.#nextToken();
    this.lastToken = token;
    const taken = new Set(this.grants.flatMap(({ slots }) => slots));
    const slots: number[] = [];
    const count = claim.amount <= this.#numbered ? claim.amount : 0;
    for (let slot = 0; slots.length < count; slot += 1) if (!taken.has(slot)) slots.push(slot);
    const endsAtUs = this.nowUs + claim.leaseMs * 1_000;
    const grant = { claim, weight: claim.amount, token, firstToken: token, slots, endsAtUs, change: 0 };
    this.#grants.set(claim.owner, grant);
    return grant;
  }

  #nextToken(): number {
    return Math.max((this.lastToken ?? 0) + 1, this.nowUs);
  }

  #under(claim: Claim, token: number): ModelGrant | undefined {
    const held = this.grantOf(claim);
    return held !== undefined && token >= held.firstToken && token <= held.token ? held : undefined;
  }

  #whyLost(token: number): Lost {
    if (this.lastToken === undefined || this.lastToken < token) return "forgotten";
    return this.lastToken === token ? "unclaimed" : "claimed";
  }

  #unqueue(claim: Claim): void {
    this.queue = this.queue.filter((waiting) => waiting !== claim);
  }
}

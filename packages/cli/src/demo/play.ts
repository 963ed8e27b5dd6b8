/**
 * Plays the demo in two acts: the same customers first without a lock, and then with locks while workers are killed.
 */
import { formatMs, sleep } from "../frame/durations.js";
import { type Books, CountingShop } from "./shop.js";
import type { Hand, Hire } from "./staff.js";
import { GATEWAY_PERMITS, LEASE_MS, type WorkerEvent } from "./worker.js";

/** The parameters of the demo. */
export interface Play {
  readonly workers: number;
  readonly forMs: number;
  readonly isChaos: boolean;
  /** Creates the workers of one act. */
  readonly hire: (shop: CountingShop, withLock: boolean) => Hire;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** A killed worker, and when its payment was settled. */
interface Death {
  readonly worker: string;
  readonly payment: string | undefined;
  readonly atMs: number;
  settledAfterMs: number | undefined;
}

/** The result of the demo. */
export interface PlaySummary {
  readonly withoutLock: Books;
  readonly withLock: Books;
  readonly permits: number;
  readonly deaths: readonly {
    readonly worker: string;
    readonly payment: string | null;
    readonly settledAfterMs: number | null;
  }[];
  /** Results that differ from what the locks guarantee; empty if there are none. */
  readonly faults: readonly string[];
}

const NEW_PAYMENT_EVERY_MS = 120;
const LONGEST_FIRST_ACT_MS = 8_000;
const REPORT_EVERY_MS = 5_000;
const CHAOS_EVERY_MS = 4_000;
/** Time after the last press within which a dead worker's payment must be settled: its lease plus time in the queue. */
const SETTLE_WITHIN_MS = 10 * LEASE_MS;

/** Plays both acts. */
export async function play(options: Play): Promise<PlaySummary> {
  const { workers, forMs, say } = options;
  const firstMs = Math.min(LONGEST_FIRST_ACT_MS, forMs / 4);
  say(
    `${workers} workers settle payments. Impatient customers press the button again, and any worker may get the request.`,
  );

  say("\nWithout a lock: each worker checks for an order, charges the card, and writes the order.");
  const without = new Act(options, new CountingShop(), false);
  await without.run(firstMs);
  const withoutLock = without.shop.books();
  say(`  ${summaryOf(withoutLock)}`);

  say(
    `\nWith holdfast.mutex("payment:…"), semaphore("gateway", { permits: ${GATEWAY_PERMITS} }) and election("feed"):`,
  );
  const withLocks = new Act(options, new CountingShop(), true);
  await withLocks.run(forMs - firstMs);
  const withLock = withLocks.shop.books();
  const { deaths } = withLocks;
  say(`  ${summaryOf(withLock)}`);
  say(
    `  at most ${withLock.mostAtOnce} charges at a time, ${withLock.leaders === 1 ? "1 leader" : `${withLock.leaders} leaders in turn`}`,
  );
  return {
    withoutLock,
    withLock,
    permits: GATEWAY_PERMITS,
    deaths: deaths.map(({ worker, payment, settledAfterMs }) => ({
      worker,
      payment: payment ?? null,
      settledAfterMs: settledAfterMs === undefined ? null : Math.round(settledAfterMs),
    })),
    faults: faultsOf(withLock, deaths),
  };
}

function summaryOf({ payments, presses, orders, duplicates }: Books): string {
  return `${payments} payments, ${presses} presses, ${orders} orders, ${duplicates} duplicates`;
}

function faultsOf(books: Books, deaths: readonly Death[]): string[] {
  const faults: string[] = [];
  if (books.duplicates > 0) faults.push(`${books.duplicates} duplicate orders with the lock`);
  if (books.orders < books.payments) faults.push(`${books.payments - books.orders} payments were never settled`);
  // If a worker is killed during a charge, the charge continues at the gateway after the permit has expired.
  const most = GATEWAY_PERMITS + deaths.length;
  if (books.mostAtOnce > most) faults.push(`${books.mostAtOnce} charges at a time with ${GATEWAY_PERMITS} permits`);
  return faults;
}

/** The customers and the workers of one act. */
class Act {
  readonly shop: CountingShop;
  readonly deaths: Death[] = [];
  readonly #options: Play;
  readonly #withLock: boolean;
  readonly #hire: Hire;
  readonly #hands: Hand[] = [];
  readonly #settling = new Map<string, string>();
  #lastPayment = 0;
  #leader = "no worker";

  constructor(options: Play, shop: CountingShop, withLock: boolean) {
    this.#options = options;
    this.shop = shop;
    this.#withLock = withLock;
    this.#hire = options.hire(shop, withLock);
  }

  async run(forMs: number): Promise<void> {
    const { workers, signal } = this.#options;
    for (let number = 1; number <= workers; number += 1) this.#hands.push(await this.#hireOne(`worker ${number}`));
    try {
      const began = performance.now();
      const elapsedMs = (): number => performance.now() - began;
      // With locks, leave enough time to settle the last payment, even if another worker has to take over.
      const pressMs = this.#withLock ? Math.max(forMs / 2, forMs - 2 * LEASE_MS) : forMs;
      const killAtMs = pressMs * 0.4;
      let nextKillMs = this.#withLock && workers > 1 ? killAtMs : Number.POSITIVE_INFINITY;
      let nextReportMs = REPORT_EVERY_MS;
      while (elapsedMs() < pressMs && !signal.aborted) {
        this.#newPayment();
        if (elapsedMs() >= nextKillMs && (await this.#killOne())) {
          nextKillMs = this.#options.isChaos ? elapsedMs() + CHAOS_EVERY_MS : Number.POSITIVE_INFINITY;
        }
        if (elapsedMs() >= nextReportMs) {
          nextReportMs += REPORT_EVERY_MS;
          this.#reportState(elapsedMs());
        }
        await sleep(NEW_PAYMENT_EVERY_MS, signal);
      }
      if (this.#withLock) await this.#settleRest(signal);
    } finally {
      await Promise.all(this.#hands.map((hand) => hand.close()));
    }
  }

  #reportState(elapsedMs: number): void {
    const leader = this.#withLock ? `; ${this.#leader} pulls the feed` : "";
    this.#options.say(`  ${formatMs(elapsedMs).padEnd(5)} ${summaryOf(this.shop.books())}${leader}`);
  }

  /** Adds a payment with 1 to 5 presses within half a second, each at a random worker. */
  #newPayment(): void {
    this.#lastPayment += 1;
    const payment = `payment:${this.#lastPayment}`;
    const presses = 1 + Math.floor(Math.random() * 5);
    for (let press = 0; press < presses; press += 1) {
      const afterMs = press === 0 ? 0 : Math.random() * 500;
      setTimeout(() => this.#press(payment), afterMs);
    }
  }

  #press(payment: string): void {
    this.shop.press(payment);
    this.#hands[Math.floor(Math.random() * this.#hands.length)]?.press(payment);
  }

  /** Presses again for each payment that got no order because its worker was killed. */
  async #settleRest(signal: AbortSignal): Promise<void> {
    const until = performance.now() + SETTLE_WITHIN_MS;
    while (performance.now() < until && !signal.aborted) {
      const { payments, orders } = this.shop.books();
      if (orders >= payments) return;
      for (let number = 1; number <= this.#lastPayment; number += 1) {
        const payment = `payment:${number}`;
        if (!(await this.shop.hasOrder(payment))) this.#press(payment);
      }
      await sleep(500, signal);
    }
  }

  async #hireOne(name: string): Promise<Hand> {
    return await this.#hire(name, (event) => this.#heard(name, event));
  }

  #heard(name: string, event: WorkerEvent): void {
    if (event.event === "leading") this.#leader = name;
    else if (event.event === "settling") this.#settling.set(name, event.payment);
    else {
      if (this.#settling.get(name) === event.payment) this.#settling.delete(name);
      const death = this.deaths.find((one) => one.payment === event.payment && one.settledAfterMs === undefined);
      if (death === undefined) return;
      death.settledAfterMs = performance.now() - death.atMs;
      const after = formatMs(death.settledAfterMs);
      this.#options.say(`  ${name} settled ${event.payment} of the killed ${death.worker}, ${after} after the kill`);
    }
  }

  /**
   * Kills a worker that is processing a payment, preferably the leader, so that a new one is elected. Returns false if
   * no worker is busy.
   */
  async #killOne(): Promise<boolean> {
    const busy = this.#hands.filter(({ name }) => this.#settling.has(name));
    const victim =
      busy.find(({ name }) => name === this.#leader) ?? (this.#options.isChaos ? busy[0] : undefined) ?? busy[0];
    if (victim === undefined) return false;
    const payment = this.#settling.get(victim.name);
    this.#settling.delete(victim.name);
    const wasLeader = victim.name === this.#leader;
    this.deaths.push({ worker: victim.name, payment, atMs: performance.now(), settledAfterMs: undefined });
    await victim.kill();
    this.#options.say(
      `  ${victim.name} was killed with -9 while it held ${payment}${wasLeader ? ", and the election" : ""}`,
    );
    this.#hands[this.#hands.indexOf(victim)] = await this.#hireOne(victim.name);
    // The customer gets no reply from the killed worker, and presses again.
    if (payment !== undefined) this.#press(payment);
    return true;
  }
}

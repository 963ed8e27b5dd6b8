/**
 * A simulated client library: it has a command connection and a subscriber connection, replaces lost ones, and then
 * sends pending requests. The production driver for client libraries uses it.
 */
import { type Inbox, type Reply, type Script, type Store, StoreError } from "holdfast";
import { clientStore, type GrantConditions, type Inboxes, type ScriptClient } from "holdfast/simulation";
import { Ears } from "../ears.js";
import type { NetworkHost } from "../network-host.js";
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import { Requests } from "../requests.js";
import { Travel } from "../travel.js";
import { idOf, LOAD, type SimulatedServer } from "./server.js";

/** What a client needs from the world. */
export interface Landscape {
  /** The network between a process and a server. */
  hostOf(server: SimulatedServer): NetworkHost;
  plan(atMs: number, what: string, happen: () => void): unknown;
  readonly nowMs: number;
}

/** Called whenever a connection is made: returns the server that it leads to; undefined if none is known. */
export type Lead = () => SimulatedServer | undefined;

interface Order {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly settle: (end: { readonly reply: Reply } | { readonly error: unknown }) => void;
  /** The connection on which it was last sent. */
  sentOver: Requests | undefined;
  /** The server, and its incarnation, that the client had last reached when the request was made. */
  readonly madeFor: Life | undefined;
}

/** A server, in one of its incarnations. */
interface Life {
  readonly server: SimulatedServer;
  readonly promotions: number;
}

interface Subscription {
  readonly channel: string;
  readonly onMessage: (message: string) => void;
  inbox: Inbox | undefined;
  isClosed: boolean;
  /** Called when it is confirmed on the present connection. */
  opened: () => void;
}

/** The interval between two attempts to reach a server. */
const TRY_AGAIN_MS = 20;

/** A simulated client. */
export class SimulatedClient {
  readonly store: Store;
  readonly #land: Landscape;
  readonly #process: SimulatedProcess;
  readonly #random: Random;
  readonly #lead: Lead;
  readonly #timeoutMs: number;
  readonly #orders = new Set<Order>();
  readonly #subscriptions = new Set<Subscription>();
  /** The script that was requested with these inputs; its actual text, and so its hash, may differ. */
  readonly #asked = new WeakMap<readonly (string | number)[], Script>();
  /** The other loaded scripts, by hash. */
  readonly #taught = new Map<string, Script>();
  #requests: Requests | undefined;
  /** The server of its last command connection, and how many times that had been promoted by then. */
  #last: Life | undefined;
  #ears: Ears | undefined;
  #losses = 0;
  #resends = false;
  #isGone = false;
  #onBack: () => void = () => {};
  #onHearing: () => void = () => {};

  /** @param timeoutMs  how long to wait for a reply */
  constructor(
    land: Landscape,
    process: SimulatedProcess,
    random: Random,
    lead: Lead,
    timeoutMs: number,
    conditions: GrantConditions,
  ) {
    this.#land = land;
    this.#process = process;
    this.#random = random;
    this.#lead = lead;
    this.#timeoutMs = timeoutMs;
    const store = clientStore({
      kind: "simulated",
      client: this.#scripts(),
      inboxes: (onReconnect) => this.#inboxes(onReconnect),
      watch: (onBack) => {
        this.#onBack = onBack;
        return () => {};
      },
      conditions,
    });
    this.store = {
      ...store,
      run: (script, keys, args, timeout) => {
        this.#asked.set(args, script);
        return store.run(script, keys, args, timeout);
      },
    };
    this.#connect("commands");
    this.#connect("inbox");
  }

  /** The number of open subscriptions. */
  get earCount(): number {
    return this.#subscriptions.size;
  }

  /** Whether messages reach it now. */
  get isListening(): boolean {
    return this.#ears?.isListening === true;
  }

  /**
   * Loses a connection, and replaces it after `backInMs`.
   *
   * @param resends  whether it resends requests without a reply
   */
  lose(connection: "commands" | "inbox", backInMs: number, resends: boolean): void {
    if (connection === "commands") {
      if (this.#requests === undefined) return;
      this.#losses += 1;
      this.#resends = resends;
      const lost = this.#requests;
      this.#requests = undefined;
      lost.abandon();
      lost.cut(false);
    } else {
      if (this.#ears === undefined) return;
      this.#ears.abandon(0);
      this.#ears = undefined;
      for (const subscription of this.#subscriptions) subscription.inbox = undefined;
    }
    this.#later(backInMs, connection);
  }

  /** The process has ended, or has closed the client. */
  end(): void {
    this.#isGone = true;
    this.#requests?.abandon();
    this.#ears?.abandon(0);
  }

  #later(inMs: number, connection: "commands" | "inbox"): void {
    this.#land.plan(this.#land.nowMs + inMs, `${this.#process.name} ${connection} back`, () => {
      this.#process.enter(() => this.#connect(connection));
    });
  }

  #connect(connection: "commands" | "inbox"): void {
    if (this.#isGone || this.#process.isDead) return;
    const server = this.#lead();
    if (server === undefined || server.isDown) {
      this.#later(TRY_AGAIN_MS, connection);
      return;
    }
    const travel = new Travel(this.#land.hostOf(server), this.#process, this.#random);
    if (connection === "commands") {
      this.#requests = new Requests(travel, server.connection());
      if (this.#losses > 0) this.#onBack();
      this.#last = { server, promotions: server.promotions };
      for (const order of this.#orders) {
        // A request that waited through two incarnations of a server need not name another one: that is not
        // guaranteed.
        const { madeFor } = order;
        const isForItsPast = madeFor?.server === server && madeFor.promotions !== server.promotions;
        if (isForItsPast) order.settle({ error: new Error("the connection was lost") });
        else this.#send(order);
      }
    } else {
      this.#ears = new Ears(travel, server.connection());
      this.#listen(this.#ears);
    }
  }

  #send(order: Order): void {
    const requests = this.#requests;
    if (requests === undefined) return;
    order.sentOver = requests;
    requests.run(order.script, order.keys, order.args, this.#timeoutMs).then(
      (reply) => order.settle({ reply }),
      (error: unknown) => {
        // A request that its client library will resend has not failed yet.
        if (this.#requests !== requests && this.#resends) {
          if (order.sentOver === requests && this.#requests !== undefined && this.#orders.has(order)) this.#send(order);
          return;
        }
        order.settle({ error: error instanceof StoreError ? error.cause : error });
      },
    );
  }

  #order(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const limit = this.#process.startTimer(
        () => order.settle({ error: new Error("no answer in time") }),
        this.#timeoutMs,
        "time-out",
      );
      const order: Order = {
        script,
        keys,
        args,
        sentOver: undefined,
        madeFor: this.#last,
        settle: (end) => {
          if (!this.#orders.delete(order)) return;
          limit.cancel();
          if ("reply" in end) resolve(end.reply);
          else reject(end.error as Error);
        },
      };
      this.#orders.add(order);
      this.#send(order);
    });
  }

  #scripts(): ScriptClient {
    return {
      evalsha: (sha1, keys, args) => {
        const script = this.#asked.get(args) ?? this.#taught.get(sha1) ?? nameless(sha1);
        return this.#order({ ...script, sha1 }, keys, args);
      },
      load: (source) => {
        const sha1 = idOf(source);
        this.#taught.set(sha1, { ...nameless(sha1), name: nameIn(source) });
        return this.#order({ ...nameless(sha1), name: LOAD, source }, [], []);
      },
      isClosed: () => this.#isGone,
      losses: () => this.#losses,
    };
  }

  #inboxes(onReconnect: () => void): Inboxes {
    this.#onHearing = onReconnect;
    return {
      open: (channel, onMessage, timeoutMs) =>
        new Promise((resolve, reject) => {
          const limit = this.#process.startTimer(
            () => {
              this.#close(subscription);
              reject(new StoreError(channel, { mayHaveRun: true, transient: true, cause: "no answer in time" }));
            },
            timeoutMs,
            "subscribe time-out",
          );
          const subscription: Subscription = {
            channel,
            onMessage,
            inbox: undefined,
            isClosed: false,
            opened: () => {
              limit.cancel();
              resolve({ close: async () => this.#close(subscription) });
            },
          };
          this.#subscriptions.add(subscription);
          if (this.#ears !== undefined) void this.#subscribe(this.#ears, subscription);
        }),
      close: async () => {
        for (const subscription of [...this.#subscriptions]) this.#close(subscription);
      },
    };
  }

  /** Restores all subscriptions; subscribers are notified when that is done. */
  #listen(ears: Ears): void {
    const wereThere = [...this.#subscriptions];
    void Promise.all(wereThere.map((subscription) => this.#subscribe(ears, subscription))).then(() => {
      if (this.#ears === ears && wereThere.length > 0) this.#onHearing();
    });
  }

  async #subscribe(ears: Ears, subscription: Subscription): Promise<void> {
    let inbox: Inbox | undefined;
    while (inbox === undefined) {
      if (this.#ears !== ears || subscription.isClosed) return;
      inbox = await ears.open(subscription.channel, subscription.onMessage, this.#timeoutMs).catch(() => undefined);
    }
    if (this.#ears !== ears) return;
    subscription.inbox = inbox;
    if (subscription.isClosed) void inbox.close();
    else subscription.opened();
  }

  #close(subscription: Subscription): void {
    subscription.isClosed = true;
    this.#subscriptions.delete(subscription);
    void subscription.inbox?.close();
  }
}

/** A script with an unknown name. */
function nameless(sha1: string): Script {
  return { name: sha1.slice(0, 8), sha1, keys: [], args: [], replies: [], source: "" };
}

function nameIn(source: string): string {
  return /^-- holdfast (\S+)/.exec(source)?.[1] ?? "a script";
}

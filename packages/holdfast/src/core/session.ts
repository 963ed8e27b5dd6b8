/**
 * What all locks of one `createHoldfast()` share: one client id, one inbox, one store, one clock.
 */

import { RequestWindow } from "./call.js";
import { type Closable, type CloseOutcome, type HeldLease, heldBy, settle } from "./closing.js";
import { ClosedError, UnsupportedError } from "./errors.js";
import type { Guard } from "./guard.js";
import { Mailbox, type Recipient, SlotInboxes } from "./inbox.js";
import { type Echo, type InboxCheck, InboxChecks, Reconnects } from "./inbox-check.js";
import { type Claim, HAND_OFF_MS, newClaim, parseOwner, type WaitProtocol } from "./protocol.js";
import { BulkRenewal } from "./renewal.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import { SharedInspections } from "./shared-inspections.js";
import type { Inbox, Store } from "./store.js";
import { Confirmations, ShortHolds, Watchdog } from "./watchdog.js";

/** A claim that is alive in this process, in any state. */
export interface Occupant extends Recipient, Closable {
  /** The inbox or the connection for commands was away: whatever was missed must be found out. */
  reconnected(connection: "commands" | "inbox"): void;
  /** The client's own channel is heard from now on; what was told there before, such as a forced release, was missed. */
  listening?(): void;
  /** It is known that the server has ended the claim, before the message that tells how, if there is one. */
  ended?(): void;
}

/** How often a waiter asks although it was told to wait: a grant may have been lost without a trace. */
const RECHECK_MS = 3_000;
/** Where it is not told, or the server may grant to whoever is gone and cannot know it. */
const UNCOUNTED_RECHECK_MS = 1_000;

/** How many requests that give a claim up are under way at most: about 10 ms of processor time if they are sent in one turn. */
const MOST_DEPARTURES = 250;

/** How many claims that have waited are remembered, in case a late copy of a request gets them a grant. */
const REMEMBERED = 1_000;

/**
 * What all locks of one `createHoldfast()` stand on: one client id, one inbox, one store, one clock.
 *
 * Made once by `createHoldfast`.
 */
export class Session {
  readonly store: Store;
  readonly runtime: Runtime;
  /** Also knows who waits, holds or departs: all of them hear messages. */
  readonly mailbox: Mailbox<Occupant>;
  readonly records: ClientRecords;
  /** Stands before every request that may take a lock. */
  readonly guard: Guard;
  /** Finds, for all leases that are held, what no timer tells. */
  readonly watchdog: Watchdog;
  /** Renews what the watchdog finds to be due, where it looks at many. */
  readonly bulkRenewal: BulkRenewal;
  /** What callers whose wait has ended are told of a lock. */
  readonly inspections: SharedInspections;
  /** Holds back clean-up for many claims at the same time. */
  readonly cleanups: RequestWindow;
  /** What a client id is appended to for the name of the client's own channel. */
  readonly inboxPrefix: string;
  /** Undefined where all names are on one server, and the client's own channel serves for all. */
  readonly #slotInboxes: SlotInboxes | undefined;
  /** Undefined where nobody knows how to send an echo. */
  readonly #checks: InboxChecks | undefined;
  /** Longest wait for the answer to one script call, in ms. */
  readonly commandTimeoutMs: number;
  /** Confirms grants by message whose sections are not short. */
  readonly confirmations: Confirmations;
  /** Which locks this process last held for a moment only. */
  readonly shortHolds: ShortHolds = new ShortHolds();
  readonly #clientId: string;
  readonly #handOffMs: number;
  readonly #presence: Presence;
  readonly #cleanedUp = new Map<number, (token: number) => void>();
  readonly #stopListening: () => void;
  readonly #reconnects: Readonly<Record<"commands" | "inbox", Reconnects>>;
  readonly #closeStore: () => Promise<void>;
  #lastNumber = 0;
  #closing: Promise<CloseOutcome> | undefined;
  #cutGrace: (() => void) | undefined;
  #isRefusing = false;
  #isClosing = false;

  /** How often the connection that sends scripts has come back: a script may have been sent twice meanwhile. */
  commandReconnects = 0;

  constructor(facts: {
    readonly store: Store;
    readonly runtime: Runtime;
    readonly prefix: string;
    readonly clientId: string;
    readonly commandTimeoutMs: number;
    readonly records: ClientRecords;
    readonly guard: Guard;
    /** Longest lease of a grant by message before it is confirmed, in ms. @default HAND_OFF_MS */
    readonly handOffMs?: number | undefined;
    readonly closeStore: () => Promise<void>;
    /** Without it inboxes are not checked. */
    readonly echo?: Echo | undefined;
  }) {
    this.store = facts.store;
    this.runtime = facts.runtime;
    this.records = facts.records;
    this.guard = facts.guard;
    this.#closeStore = facts.closeStore;
    this.commandTimeoutMs = facts.commandTimeoutMs;
    this.inboxPrefix = `${facts.prefix}:in:`;
    this.#clientId = facts.clientId;
    this.#handOffMs = facts.handOffMs ?? HAND_OFF_MS;
    this.mailbox = new Mailbox(
      facts.store,
      this.inboxPrefix + facts.clientId,
      (number, token) => this.#stray(number, token),
      () => this.#checks?.heard(this.mailbox.inbox),
    );
    const { store } = facts;
    this.#checks = facts.echo && new InboxChecks(facts.echo, { ...facts, newNumber: () => this.#newNumber() });
    if (store.shardInbox !== undefined) {
      const open = (channel: string, timeoutMs: number): Promise<Inbox> =>
        (store.shardInbox as NonNullable<Store["shardInbox"]>)(
          channel,
          (message) => {
            this.#checks?.heard(this.#slotInboxes?.find(channel.slice(0, -facts.clientId.length)));
            this.mailbox.deliver(message);
          },
          timeoutMs,
        );
      this.#slotInboxes = new SlotInboxes(open, facts.clientId, facts.runtime);
    }
    this.watchdog = new Watchdog(facts.runtime);
    this.confirmations = new Confirmations(facts.runtime);
    this.inspections = new SharedInspections(facts.runtime);
    this.cleanups = new RequestWindow(MOST_DEPARTURES, facts.runtime);
    this.bulkRenewal = new BulkRenewal(facts.runtime, facts.commandTimeoutMs);
    this.#presence = new Presence(facts.records, facts.runtime, () => this.mailbox.size > 0);
    const { runtime } = facts;
    this.#reconnects = {
      commands: new Reconnects(runtime, () => this.#afterReconnect("commands")),
      inbox: new Reconnects(runtime, () => this.#afterReconnect("inbox")),
    };
    this.#stopListening = facts.store.onReconnect((connection) => this.#reconnected(connection));
  }

  /** Id of this client, with which the owner ids of its claims begin. */
  get clientId(): string {
    return this.#clientId;
  }

  /** Whether `close` was called, and its grace is over: nothing may be kept alive any more. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** @throws ClosedError  `close` was called */
  assertOpen(lockName: string): void {
    if (this.#isRefusing) throw new ClosedError(lockName);
  }

  /** What a client id is appended to for the channel on which waiters for keys with that hash tag are granted. */
  inboxOf(tag: string): string {
    return this.#slotInboxes === undefined ? this.inboxPrefix : `${this.inboxPrefix}{${tag}}:`;
  }

  /** Whether the server can reach this client with a grant: only then may a claim queue. */
  canBeTold({ inbox }: Pick<WaitProtocol, "inbox">): boolean {
    if (this.#slotInboxes === undefined || inbox === undefined) return this.mailbox.isOpen;
    return this.#slotInboxes.use(inbox) !== undefined;
  }

  /** Resolves when it can. @throws StoreError, UnsupportedError */
  async listen({ inbox }: Pick<WaitProtocol, "inbox">, timeoutMs: number): Promise<void> {
    if (this.#slotInboxes === undefined || inbox === undefined) return this.mailbox.open(timeoutMs);
    try {
      await this.#slotInboxes.open(inbox, timeoutMs);
    } catch (error) {
      if (error instanceof UnsupportedError) this.mailbox.unsupported = true;
      throw error;
    }
  }

  /** Longest pause of a waiter that stands in the queue, in ms. */
  recheckMs({ inbox, recheckMs = RECHECK_MS }: Pick<WaitProtocol, "inbox" | "recheckMs">): number {
    return Math.min(recheckMs, this.#isCounted(inbox) ? RECHECK_MS : UNCOUNTED_RECHECK_MS);
  }

  #isCounted(inbox: string | undefined): boolean {
    // Who waits without being told, as at a barrier, finds out by asking.
    if (this.#slotInboxes === undefined || inbox === undefined) return this.mailbox.isOpen;
    return this.#slotInboxes.use(inbox)?.isCounted !== false;
  }

  /** The check of the connection on which waiters with this protocol are notified; undefined while there is none. */
  inboxCheck({ inbox: prefix }: Pick<WaitProtocol, "inbox">): InboxCheck | undefined {
    if (this.#slotInboxes === undefined || prefix === undefined) {
      // In a cluster this channel is heard on any server, and messages to it go to all of them.
      const isCounted = this.#slotInboxes === undefined;
      const { inbox } = this.mailbox;
      return inbox && this.#checks?.of({ inbox, channel: this.inboxPrefix + this.#clientId, isCounted });
    }
    const inbox = this.#slotInboxes.use(prefix);
    return inbox && this.#checks?.of({ inbox, channel: prefix + this.#clientId, isCounted: true });
  }

  /** Whether the claim of that owner is one of this session's. */
  isOwn(owner: string): boolean {
    return parseOwner(owner)?.clientId === this.#clientId;
  }

  /**
   * A claim with an id of its own, for one request.
   *
   * @param isHandedOff  whether it can be granted by message
   * @throws ClosedError
   */
  newClaim(lockName: string, leaseMs: number, amount: number, label: string, isHandedOff = false): Claim {
    this.assertOpen(lockName);
    if (this.#lastNumber === 0) this.#openMailbox();
    this.#presence.touch(leaseMs);
    const handOffMs = isHandedOff ? Math.min(leaseMs, this.#handOffMs) : undefined;
    return newClaim({ clientId: this.#clientId, number: this.#newNumber(), leaseMs, amount, label, handOffMs });
  }

  #newNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /** An id for one request that makes no claim, so that it counts once however often it is sent. @throws ClosedError */
  newRequestId(lockName: string): string {
    this.assertOpen(lockName);
    return this.runtime.newClientId();
  }

  /** From now on `occupant` gets the messages for `claim` and is told of reconnects and of the end. */
  admit(claim: Claim, occupant: Occupant): void {
    this.mailbox.register(claim.number, occupant);
  }

  /** Undoes `admit`. */
  dismiss(claim: Claim, occupant: Occupant): void {
    this.mailbox.unregister(claim.number, occupant);
  }

  /** The server may have ended the claim: whoever holds by it asks. */
  recheckClaim(claim: Claim): void {
    this.mailbox.recipient(claim.number)?.recheck();
  }

  /** The server has ended the claim: whoever holds by it is told, if that is not known yet. */
  ended(claim: Claim): void {
    this.mailbox.recipient(claim.number)?.ended?.();
  }

  /** A claim that stood in the queue is settled: a grant that reaches it later belongs to nobody, and is passed on. */
  remember(claim: Claim, passOn: (token: number) => void): void {
    this.#cleanedUp.set(claim.number, passOn);
    const [oldest] = this.#cleanedUp.keys();
    if (this.#cleanedUp.size > REMEMBERED && oldest !== undefined) this.#cleanedUp.delete(oldest);
  }

  /**
   * The grant of that token goes on elsewhere: its message, which may come later than the answer that told the same,
   * is no reason to give it back. A later grant still belongs to nobody.
   */
  handedOver(claim: Claim, token: number): void {
    const passOn = this.#cleanedUp.get(claim.number);
    if (passOn === undefined) return;
    this.#cleanedUp.set(claim.number, (granted) => {
      if (granted > token) passOn(granted);
    });
  }

  /** What this client holds. */
  held(): readonly HeldLease[] {
    return heldBy(this.mailbox.recipients());
  }

  /**
   * Ends all waits, gives back all leases, closes what the store opened. A second call waits for the first.
   *
   * @param graceMs  how long to wait for the work under leases; undefined gives them back at once. A second call with 0 ends
   *                 the grace of the first
   */
  close(graceMs?: number): Promise<CloseOutcome> {
    if (graceMs === 0) this.#cutGrace?.();
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number | undefined): Promise<CloseOutcome> {
    this.#isRefusing = true;
    let outcome: CloseOutcome | undefined;
    if (graceMs !== undefined) {
      outcome = await settle(this.mailbox.recipients(), this.runtime, graceMs, (cut) => {
        this.#cutGrace = cut;
      });
    }
    this.#isClosing = true;
    this.#presence.close();
    const holders = this.mailbox.recipients().map((occupant) => ({ occupant, leases: occupant.held?.() ?? [] }));
    // Waiters turn into cleanups, which are occupants too: until nobody is left.
    while (this.mailbox.size > 0) {
      await Promise.all(this.mailbox.recipients().map((occupant) => occupant.close()));
    }
    const released: HeldLease[] = [];
    const unsettled: HeldLease[] = [];
    for (const { occupant, leases } of holders) {
      const isReleased = (await occupant.givenBack) === true;
      (isReleased ? released : unsettled).push(...leases);
    }
    this.#stopListening();
    for (const reconnects of Object.values(this.#reconnects)) reconnects.close();
    this.watchdog.close();
    this.confirmations.close();
    this.#checks?.close();
    await this.#slotInboxes?.close();
    await this.mailbox.close();
    await this.#closeStore();
    return outcome ?? { released, unsettled };
  }

  /** Early, so that the first wait need not wait for it and a holder hears of a forced release. */
  #openMailbox(): void {
    this.mailbox.open(this.commandTimeoutMs).then(
      () => this.#listening(),
      // Whoever has to wait opens it again and deals with the failure.
      () => {},
    );
  }

  /** A connection of its own is made first, and that takes long enough for somebody to act meanwhile. */
  #listening(): void {
    // From now on it is known how long nothing has been received.
    this.inboxCheck({});
    for (const occupant of this.mailbox.recipients()) occupant.listening?.();
  }

  /** A grant to nobody: the network has delivered a request twice, or very late. */
  #stray(number: number, token: number): void {
    if (!this.isClosing) this.#cleanedUp.get(number)?.(token);
  }

  #reconnected(connection: "commands" | "inbox"): void {
    if (connection === "commands") {
      this.commandReconnects += 1;
      this.guard.serverMayHaveChanged();
    }
    this.#reconnects[connection].happened();
  }

  #afterReconnect(connection: "commands" | "inbox"): void {
    if (connection === "commands") this.#presence.announce();
    for (const occupant of this.mailbox.recipients()) occupant.reconnected(connection);
  }
}

// --- Keeps the record of this client alive while it holds or waits, so that others can see which process it is.
//
// It is for people only: failing to write it harms nothing, and it is tried again in time.

/** Where client records are kept. */
export interface ClientRecords {
  /** Writes this client's record, and marks its protocol as in use; both count for `keepMs` from now. @throws StoreError */
  announce(keepMs: number): Promise<void>;
  /** The record of any client; undefined if there is none. @throws StoreError */
  read(clientId: string, timeoutMs: number): Promise<ClientRecord | undefined>;
}

/** Which process a client is. */
export interface ClientRecord {
  readonly host: string;
  readonly pid: number;
  /** The `clientName` option; undefined if it gave none. */
  readonly clientName: string | undefined;
  /** Version of the protocol that it speaks; 0 for clients from before there were versions. */
  readonly protocol: number;
}

/** A record lives this much longer than the longest lease, so that it is still there when a dead holder is asked about. */
export const KEEP_MS = 60_000;
const REFRESH_MS = 20_000;

/** Writes the record when the client is first used, and again while it is in use. */
export class Presence {
  readonly #records: ClientRecords;
  readonly #isInUse: () => boolean;
  #longestLeaseMs = 0;
  readonly #timer: SharedTimer;
  #closed = false;

  constructor(records: ClientRecords, runtime: Runtime, isInUse: () => boolean) {
    this.#records = records;
    this.#isInUse = isInUse;
    this.#timer = new SharedTimer(runtime, () => this.#refresh());
  }

  /** Called for every claim; does nothing but compare while the record is fresh. */
  touch(leaseMs: number): void {
    const isLonger = leaseMs > this.#longestLeaseMs;
    if (isLonger) this.#longestLeaseMs = leaseMs;
    if (isLonger || !this.#timer.isRunning) this.announce();
  }

  /** Writes the record now, e.g. because the server may have lost it. */
  announce(): void {
    if (this.#closed || this.#longestLeaseMs === 0) return;
    this.#timer.start(REFRESH_MS);
    this.#records.announce(this.#longestLeaseMs + KEEP_MS).catch(() => {
      // The next refresh tries again; until then this client is known by its id alone.
    });
  }

  /** Stops refreshing. The record goes by itself. */
  close(): void {
    this.#closed = true;
    this.#timer.cancel();
  }

  #refresh(): void {
    if (this.#isInUse()) this.announce();
  }
}

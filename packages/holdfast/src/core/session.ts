/**
 * The session: the state that all locks of one `createHoldfast()` share.
 */

import { RequestWindow } from "./call.js";
import { type Closable, type CloseOutcome, type HeldLease, heldBy, settle } from "./closing.js";
import { ClosedError, UnsupportedError } from "./errors.js";
import type { Guard } from "./guard.js";
import { ClientInbox, type Recipient, type SlotInboxes } from "./inbox.js";
import { type Echo, type InboxCheck, InboxChecks, Reconnects } from "./inbox-check.js";
import { type Claim, HAND_OFF_MS, OwnClaim, parseOwner, type WaitProtocol } from "./protocol.js";
import { BulkRenewal } from "./renewal.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import { SharedInspections } from "./shared-inspections.js";
import type { Inbox, Store } from "./store.js";
import { Confirmations, ShortHolds, Watchdog } from "./watchdog.js";

/** A claim of this process in any state: waiting, holding, or being cleaned up. */
export interface Occupant extends Recipient, Closable {
  /**
   * Called after the inbox or the command connection reconnects. Messages or replies may have been lost, so ask the
   * server.
   */
  reconnected(connection: "commands" | "inbox"): void;
  /**
   * Called when the client has subscribed to its own channel. Messages sent before that, such as the notice of a forced
   * release, are lost, so ask the server.
   */
  listening?(): void;
  /** Called when a reply shows that the server has ended the claim. A message that says why may still follow. */
  ended?(): void;
}

/** Interval between re-checks of a waiter in the queue, in ms. Re-checks find grants whose messages were lost. */
const RECHECK_MS = 3_000;
/** The same interval for waiters that get no messages, or whose server cannot detect that a client is gone. */
const UNCOUNTED_RECHECK_MS = 1_000;

/** Maximum number of cleanup requests in flight. Sending this many in one turn takes about 10 ms of processor time. */
const MOST_DEPARTURES = 250;

/** Maximum number of settled claims to remember: a late copy of a request can still make the server grant them. */
const REMEMBERED = 1_000;

/**
 * The state that all locks of one `createHoldfast()` share: the client id, the inbox, the store and the clocks.
 * `createHoldfast` creates one session.
 */
export class Session {
  /** The store that all locks of this session use. */
  readonly store: Store;
  /** Clocks, timers and random numbers. */
  readonly runtime: Runtime;
  /** Delivers messages to the claims of this session: those that are waiting, holding, or being cleaned up. */
  readonly clientInbox: ClientInbox<Occupant>;
  /** Reads and writes client records. */
  readonly records: ClientRecords;
  /** Checks the server before each request that may acquire a lock. */
  readonly guard: Guard;
  /** Checks held leases against both clocks once a second. */
  readonly watchdog: Watchdog;
  /** Renews leases together if this process holds many. */
  readonly bulkRenewal: BulkRenewal;
  /** Reads the state of a lock for callers whose wait has ended. */
  readonly inspections: SharedInspections;
  /** Limits how many cleanup requests run at the same time. */
  readonly cleanups: RequestWindow;
  /** Prefix of the client's own channel; the client id follows it. */
  readonly inboxPrefix: string;
  /** Undefined if all locks are on one server; then the client's own channel serves all of them. */
  readonly #slotInboxes: SlotInboxes | undefined;
  /** Undefined if the session was created without `echo`. */
  readonly #checks: InboxChecks | undefined;
  /** Timeout of one script call, in ms. */
  readonly commandTimeoutMs: number;
  /** Confirms the grants that arrived as messages, unless the lock is held only briefly. */
  readonly confirmations: Confirmations;
  /** The locks whose last hold in this process was brief. */
  readonly shortHolds: ShortHolds = new ShortHolds();
  readonly #clientId: string;
  readonly #handOffMs: number;
  readonly #record: OwnClientRecord;
  readonly #cleanedUp = new Map<number, (token: number) => void>();
  readonly #background = new Set<Promise<unknown>>();
  readonly #stopListening: () => void;
  readonly #reconnects: Readonly<Record<"commands" | "inbox", Reconnects>>;
  readonly #closeStore: () => Promise<void>;
  #lastNumber = 0;
  #closing: Promise<CloseOutcome> | undefined;
  #cutGrace: (() => void) | undefined;
  #isRefusing = false;
  #isClosing = false;

  /** The claims that this process may retain after a release, by lock key. Undefined until one exists. */
  retained: Map<string, { end(): Promise<unknown> }> | undefined;

  /** Number of reconnects of the command connection. If it rises during a call, the script may have been sent twice. */
  commandReconnects = 0;

  /** Total number of reconnects of both connections. */
  reconnects = 0;

  constructor(facts: {
    readonly store: Store;
    readonly runtime: Runtime;
    readonly prefix: string;
    readonly clientId: string;
    readonly commandTimeoutMs: number;
    readonly records: ClientRecords;
    readonly guard: Guard;
    /** Maximum duration of a grant by message that is not confirmed, in ms. @default HAND_OFF_MS */
    readonly handOffMs?: number | undefined;
    readonly closeStore: () => Promise<void>;
    /** Sends the echoes that check the inboxes. If absent, inboxes are not checked. */
    readonly echo?: Echo | undefined;
    /** Manages the inboxes of a store with `shardInbox`. If absent, the store must not have it. */
    readonly slotInboxes?: typeof SlotInboxes | undefined;
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
    this.clientInbox = new ClientInbox(
      facts.store,
      this.inboxPrefix + facts.clientId,
      (number, token) => this.#stray(number, token),
      () => this.#checks?.heard(this.clientInbox.inbox),
    );
    const { store } = facts;
    this.#checks = facts.echo && new InboxChecks(facts.echo, { ...facts, newNumber: () => this.#newNumber() });
    if (facts.slotInboxes !== undefined && store.shardInbox !== undefined) {
      const open = (channel: string, timeoutMs: number): Promise<Inbox> =>
        (store.shardInbox as NonNullable<Store["shardInbox"]>)(
          channel,
          (message) => {
            this.#checks?.heard(this.#slotInboxes?.find(channel.slice(0, -facts.clientId.length)));
            this.clientInbox.deliver(message);
          },
          timeoutMs,
        );
      this.#slotInboxes = new facts.slotInboxes(open, facts.clientId, facts.runtime);
    }
    this.watchdog = new Watchdog(facts.runtime);
    this.confirmations = new Confirmations(facts.runtime);
    this.inspections = new SharedInspections(facts.runtime);
    this.cleanups = new RequestWindow(MOST_DEPARTURES, facts.runtime);
    this.bulkRenewal = new BulkRenewal(facts.runtime, facts.commandTimeoutMs);
    this.#record = new OwnClientRecord(facts.records, facts.runtime, () => this.clientInbox.size > 0);
    const { runtime } = facts;
    this.#reconnects = {
      commands: new Reconnects(runtime, () => this.#afterReconnect("commands")),
      inbox: new Reconnects(runtime, () => this.#afterReconnect("inbox")),
    };
    this.#stopListening = facts.store.onReconnect((connection) => this.#reconnected(connection));
  }

  /** Id of this client. The owner ids of its claims begin with it. */
  get clientId(): string {
    return this.#clientId;
  }

  /** Whether `close` was called and its grace period is over. If so, every lease and every wait must end. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** @throws ClosedError  `close` was called */
  assertOpen(lockName: string): void {
    if (this.#isRefusing) throw new ClosedError(lockName);
  }

  /** Returns the channel prefix for grants of locks whose keys have this hash tag. The client id follows the prefix. */
  inboxOf(tag: string): string {
    return this.#slotInboxes === undefined ? this.inboxPrefix : `${this.inboxPrefix}{${tag}}:`;
  }

  /** Whether the server can send a grant to this client. If it cannot, no claim may join the queue. */
  canReceiveGrants({ inbox }: Pick<WaitProtocol, "inbox">): boolean {
    if (this.#slotInboxes === undefined || inbox === undefined) return this.clientInbox.isOpen;
    return this.#slotInboxes.use(inbox) !== undefined;
  }

  /** Subscribes. Resolves when `canReceiveGrants` is true. @throws StoreError, UnsupportedError */
  async listen({ inbox }: Pick<WaitProtocol, "inbox">, timeoutMs: number): Promise<void> {
    if (this.#slotInboxes === undefined || inbox === undefined) return this.clientInbox.open(timeoutMs);
    try {
      await this.#slotInboxes.open(inbox, timeoutMs);
    } catch (error) {
      if (error instanceof UnsupportedError) this.clientInbox.unsupported = true;
      throw error;
    }
  }

  /** Returns the maximum time between two re-checks of a waiter in the queue, in ms. */
  recheckMs({ inbox, recheckMs = RECHECK_MS }: Pick<WaitProtocol, "inbox" | "recheckMs">): number {
    return Math.min(recheckMs, this.#isCounted(inbox) ? RECHECK_MS : UNCOUNTED_RECHECK_MS);
  }

  #isCounted(inbox: string | undefined): boolean {
    // Some waiters, such as those at a barrier, can wait even if their client cannot subscribe. They get no messages,
    // so they must ask more often.
    if (this.#slotInboxes === undefined || inbox === undefined) return this.clientInbox.isOpen;
    return this.#slotInboxes.use(inbox)?.isCounted !== false;
  }

  /** Returns the check of the connection that notifies waiters of this protocol; undefined while there is none. */
  inboxCheck({ inbox: prefix }: Pick<WaitProtocol, "inbox">): InboxCheck | undefined {
    if (this.#slotInboxes === undefined || prefix === undefined) {
      // In a cluster, the subscription to this channel may be on any server, so the server that runs a script cannot
      // count it.
      const isCounted = this.#slotInboxes === undefined;
      const { inbox } = this.clientInbox;
      return inbox && this.#checks?.of({ inbox, channel: this.inboxPrefix + this.#clientId, isCounted });
    }
    const inbox = this.#slotInboxes.use(prefix);
    return inbox && this.#checks?.of({ inbox, channel: prefix + this.#clientId, isCounted: true });
  }

  /** Whether the owner id belongs to a claim of this session. */
  isOwn(owner: string): boolean {
    return parseOwner(owner)?.clientId === this.#clientId;
  }

  /**
   * Creates a claim with a new owner id.
   *
   * @param leaseMs      length of the lease, in ms
   * @param isHandedOff  whether the claim can be granted by message
   * @throws ClosedError  `close` was called
   */
  newClaim(lockName: string, leaseMs: number, amount: number, label: string, isHandedOff = false): Claim {
    this.assertOpen(lockName);
    if (this.#lastNumber === 0) this.#openMailbox();
    this.#record.touch(leaseMs);
    const handOffMs = isHandedOff ? Math.min(leaseMs, this.#handOffMs) : undefined;
    return new OwnClaim({ clientId: this.#clientId, number: this.#newNumber(), leaseMs, amount, label, handOffMs });
  }

  #newNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /**
   * Creates an id for a request without a claim, so that the request counts once even if it is sent twice.
   *
   * @throws ClosedError
   */
  newRequestId(lockName: string): string {
    this.assertOpen(lockName);
    return this.runtime.newClientId();
  }

  /**
   * Starts notifying `occupant` of messages for `claim` and of reconnects. When this session closes, it also closes
   * `occupant`.
   */
  admit(claim: Claim, occupant: Occupant): void {
    this.clientInbox.register(claim.number, occupant);
  }

  /** Undoes `admit`. */
  dismiss(claim: Claim, occupant: Occupant): void {
    this.clientInbox.unregister(claim.number, occupant);
  }

  /** Makes the occupant of the claim ask the server, because the server may have ended the claim. */
  recheckClaim(claim: Claim): void {
    this.clientInbox.recipient(claim.number)?.recheck();
  }

  /** Notifies the claim's occupant that the server has ended the claim. */
  ended(claim: Claim): void {
    this.clientInbox.recipient(claim.number)?.ended?.();
  }

  /**
   * Remembers a settled claim that the server may still grant.
   *
   * @param passOn  passes on a later grant, because no caller would use it; called with the token of that grant
   */
  remember(claim: Claim, passOn: (token: number) => void): void {
    this.#cleanedUp.set(claim.number, passOn);
    const [oldest] = this.#cleanedUp.keys();
    if (this.#cleanedUp.size > REMEMBERED && oldest !== undefined) this.#cleanedUp.delete(oldest);
  }

  /**
   * Records that the grant with this token was used, so that a late message about it does not cause a release. The
   * message may arrive after the reply that announced the same grant. A grant with a higher token is still passed on.
   */
  handedOver(claim: Claim, token: number): void {
    const passOn = this.#cleanedUp.get(claim.number);
    if (passOn === undefined) return;
    this.#cleanedUp.set(claim.number, (granted) => {
      if (granted > token) passOn(granted);
    });
  }

  /** Makes `close` wait for work that no caller awaits. @param work  never rejects */
  inBackground(work: Promise<unknown>): void {
    this.#background.add(work);
    void work.then(() => this.#background.delete(work));
  }

  /** Returns all leases that this client holds. */
  held(): readonly HeldLease[] {
    return heldBy(this.clientInbox.recipients());
  }

  /**
   * Ends all waits, releases all leases, and closes what the store opened. A second call waits for the first.
   *
   * @param graceMs  how long to wait for work that runs under leases, in ms. If undefined, leases are released
   *                 immediately. A second call with 0 ends the grace period of the first
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
      outcome = await settle(this.clientInbox.recipients(), this.runtime, graceMs, (cut) => {
        this.#cutGrace = cut;
      });
    }
    this.#isClosing = true;
    this.#record.close();
    const holders = this.clientInbox.recipients().map((occupant) => ({ occupant, leases: occupant.held?.() ?? [] }));
    // Closing a waiter starts a cleanup, which is another occupant. A release in the background may also start one.
    // Repeat until no occupant and no background work is left.
    while (this.clientInbox.size + this.#background.size > 0) {
      await Promise.all([...this.#background, ...this.clientInbox.recipients().map((occupant) => occupant.close())]);
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
    await this.clientInbox.close();
    await this.#closeStore();
    return outcome ?? { released, unsettled };
  }

  /** Subscribes early, so that the first wait is not delayed and holders are notified of a forced release. */
  #openMailbox(): void {
    this.clientInbox.open(this.commandTimeoutMs).then(
      () => this.#listening(),
      // The first claim that has to wait tries again and handles the failure.
      () => {},
    );
  }

  /** Notifies existing claims, because messages sent before the client had subscribed are lost. */
  #listening(): void {
    // Create the inbox check now, because it measures the time without messages from its creation.
    this.inboxCheck({});
    for (const occupant of this.clientInbox.recipients()) occupant.listening?.();
  }

  /** Passes on a grant that no claim is waiting for: the network delivered a request twice, or very late. */
  #stray(number: number, token: number): void {
    if (!this.isClosing) this.#cleanedUp.get(number)?.(token);
  }

  #reconnected(connection: "commands" | "inbox"): void {
    if (connection === "commands") {
      this.commandReconnects += 1;
      this.guard.serverMayHaveChanged();
    }
    this.reconnects += 1;
    this.#reconnects[connection].happened();
  }

  #afterReconnect(connection: "commands" | "inbox"): void {
    if (connection === "commands") this.#record.announce();
    for (const occupant of this.clientInbox.recipients()) occupant.reconnected(connection);
  }
}

// --- The record of this client: it says which process the client id belongs to.
//
// The record is informational only. A failed write does no harm, because the next refresh tries again.

/** Storage of client records. */
export interface ClientRecords {
  /** Writes this client's record and marks its protocol as in use, both for `keepMs` from now. @throws StoreError */
  announce(keepMs: number): Promise<void>;
  /** Reads the record of any client; undefined if there is none. @throws StoreError */
  read(clientId: string, timeoutMs: number): Promise<ClientRecord | undefined>;
}

/** The process that a client id belongs to. */
export interface ClientRecord {
  /** Host name of the process. */
  readonly host: string;
  /** Process id on that host. */
  readonly pid: number;
  /** The `clientName` option; undefined if none was given. */
  readonly clientName: string | undefined;
  /** Protocol version of the client; 0 if the client predates protocol versions. */
  readonly protocol: number;
}

/** A record outlives the longest lease by this time, in ms, so that a crashed holder can still be identified. */
export const KEEP_MS = 60_000;
const REFRESH_MS = 20_000;

/** Writes the record when the client is first used, and refreshes it while the client is in use. */
export class OwnClientRecord {
  readonly #records: ClientRecords;
  readonly #isInUse: () => boolean;
  #longestLeaseMs = 0;
  readonly #timer: SharedTimer;
  #closed = false;

  /** @param isInUse  returns whether the client is waiting for or holding a lock; if so, its record is refreshed */
  constructor(records: ClientRecords, runtime: Runtime, isInUse: () => boolean) {
    this.#records = records;
    this.#isInUse = isInUse;
    this.#timer = new SharedTimer(runtime, () => this.#refresh());
  }

  /**
   * Called for every claim. Writes the record only if it is not fresh, or if the lease is longer than all earlier ones.
   */
  touch(leaseMs: number): void {
    const isLonger = leaseMs > this.#longestLeaseMs;
    if (isLonger) this.#longestLeaseMs = leaseMs;
    if (isLonger || !this.#timer.isRunning) this.announce();
  }

  /** Writes the record now, for example because the server may have lost it. */
  announce(): void {
    if (this.#closed || this.#longestLeaseMs === 0) return;
    this.#timer.start(REFRESH_MS);
    this.#records.announce(this.#longestLeaseMs + KEEP_MS).catch(() => {
      // The next refresh tries again. Until then, other processes see only the client id.
    });
  }

  /** Stops refreshing the record, which then expires. */
  close(): void {
    this.#closed = true;
    this.#timer.cancel();
  }

  #refresh(): void {
    if (this.#isInUse()) this.announce();
  }
}

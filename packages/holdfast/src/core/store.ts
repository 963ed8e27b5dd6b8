/**
 * The store: what core needs from a client library, and the scripts that a store runs.
 */
import type { StoreFailure } from "./error-messages.js";
import { crypto } from "./runtime.js";

/**
 * The only interface to a server. A store sends script calls and receives grant messages. It does not know about lock
 * kinds.
 *
 * CONTRIBUTING.md says how to support another client library. docs/adr/002-store-port.md gives the reason for each
 * member.
 */
export interface Store {
  /** The name of the client library or server, for use in messages: "ioredis", "node-redis", "glide", "embedded". */
  readonly kind: string;

  /**
   * Runs one script atomically. `keys` and `args` are in the order of the script's header.
   *
   * Every call has its own deadline, so the promise settles in bounded time on any connection.
   *
   * @param timeoutMs  how long to wait for the reply, in ms
   * @throws StoreError  there was no reply, or the reply was an error; `mayHaveRun` says whether the
   *                     script may still have run
   */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], timeoutMs: number): Promise<Reply>;

  /**
   * Whether `run` accepts a script with `isNative` for the next release. Called for each release that could use such a
   * script, because a store may find out only after a few releases whether the server has the commands. Absent if `run`
   * never accepts such a script.
   */
  releasesNatively?(): boolean;

  /**
   * Subscribes to `channel`. The subscription lasts from the moment the promise resolves until `close` is called.
   *
   * After a dropped connection the store subscribes again by itself, and then calls the listeners of
   * `onReconnect`. Messages that were published in between are lost.
   *
   * @throws UnsupportedError  this client can never subscribe
   * @throws StoreError        the subscription failed this time
   */
  inbox(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;

  /**
   * Like `inbox`, but on the server that has the slot of the channel's hash tag. Scripts on that server can count the
   * subscribers. Present if names are spread over several servers, as in a cluster. Clients then have an inbox in each
   * slot where they wait.
   */
  shardInbox?(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;

  /**
   * Runs a script without keys on every server that grants locks. Leaves out servers that the client does not know or
   * that do not reply in time. Present if there are several such servers, as in a cluster.
   *
   * @throws StoreError  no server replied
   */
  runOnEach?(script: Script, args: readonly (string | number)[], timeoutMs: number): Promise<readonly Reply[]>;

  /**
   * Calls `listener` each time a connection of this store is ready again after it was lost. After a loss of the command
   * connection, a client may have sent a script twice. After a loss of the subscriber connection, messages were missed.
   *
   * @returns a function that removes the listener
   */
  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void;

  /**
   * Returns the key under which the server that stores `key` keeps its marker. The marker names the run in which that
   * server may grant locks. Undefined if the store keeps no marker; holders then cannot restore leases lost in a
   * failover.
   */
  lineageKey?(key: string): string | undefined;

  /**
   * Whether a renewal counts only after replicas have acknowledged it. If so, each grant must be followed by a renewal,
   * and `run` rejects a renewal that too few replicas acknowledge in time.
   */
  readonly confirmsGrants?: boolean | undefined;

  /**
   * The server that scripts currently go to, according to the client library. Undefined if the library does not say,
   * for example because names are spread over several servers. Used only for telemetry: the call must be fast, but the
   * result may sometimes be wrong.
   */
  server?(): ServerAddress | undefined;

  /**
   * What this client knows about the leases that the server remembers. Present only for a server of a quorum, and only
   * if the store must ask that server whether it may grant.
   */
  readonly memory?: ServerMemory | undefined;

  /**
   * How the client library detects a dead connection, according to its options; undefined if the options do not say.
   * Used only for diagnostics.
   */
  clientTimeouts?(): ClientTimeouts | undefined;

  /**
   * True once the owner has closed the client. Requests then fail for good, although no server has refused them. Absent
   * if the store cannot tell.
   */
  isClosed?(): boolean;

  /** Closes what the store opened itself, never what the caller passed in. A second call does nothing. */
  close(): Promise<void>;
}

/** The address of a server, as configured in the client library or discovered by it. */
export interface ServerAddress {
  /** Host name, IP address, or path of a Unix socket. */
  readonly host: string;
  /** TCP port; undefined for a Unix socket. */
  readonly port: number | undefined;
}

/** How a client library handles a connection that is dead but was never closed: see docs/half-open-connections.md. */
export interface ClientTimeouts {
  /** Name of the client library, such as "ioredis". */
  readonly library: string;
  /** How long the client waits for data before it replaces the connection, in ms; undefined if that is not set. */
  readonly socketTimeoutMs: number | undefined;
  /**
   * How long a connection is silent before the operating system probes it, in ms; undefined if the options do not say.
   */
  readonly keepAliveMs: number | undefined;
  /** What the user must do so that a dead connection is replaced; undefined if the client does that by itself. */
  readonly cure: string | undefined;
}

/** An open subscription to one channel. */
export interface Inbox {
  /**
   * False if the servers cannot count the subscribers of this channel (a cluster before Redis 7). The lock can then be
   * granted to a waiter that is gone, so the other waiters ask the server more often.
   *
   * @default true
   */
  readonly isCounted?: boolean | undefined;
  /**
   * The connection that currently carries this subscription. Other inboxes may share it. Absent if all inboxes of the
   * store share one connection.
   */
  readonly connection?: string | undefined;
  /**
   * Replaces the connection of this inbox. All inboxes on it subscribe on the new connection before the old one is
   * closed. Then the listeners of `onReconnect` are called. Absent if the store cannot make another connection.
   *
   * @throws the error of the new connection or of a subscription on it; the old connection may be closed anyway
   */
  reopen?(timeoutMs: number): Promise<void>;
  /** Unsubscribes. A second call does nothing. Never rejects. */
  close(): Promise<void>;
}

/**
 * A server's reply when asked whether it may grant locks. `run` identifies the current run of the server process;
 * `sharesScripts` says whether scripts loaded on the server are also loaded on its replicas.
 */
export type Standing =
  /** The server may grant leases of up to `longestMs`. It must be informed of a longer lease before it grants one. */
  | {
      readonly outcome: "settled";
      readonly longestMs: number;
      readonly run: string;
      readonly sharesScripts?: boolean | undefined;
    }
  /**
   * The server took over from another one, or was restarted, and may not grant for another `restMs`. With `alone`, this
   * time ends sooner if enough other servers of its quorum report their longest leases.
   */
  | {
      readonly outcome: "quiet" | "alone";
      readonly longestMs: number;
      readonly restMs: number;
      readonly run: string;
      readonly sharesScripts?: boolean | undefined;
    }
  /** The server hides the information that the answer needs. */
  | { readonly outcome: "hidden" };

/** What this client knows about the leases that one server of a quorum remembers: see docs/adr/131. */
export interface ServerMemory {
  /**
   * The run of the server, if the server may grant and has been informed of leases of `leaseMs`; undefined if the
   * server must be asked first.
   */
  knows(leaseMs: number): string | undefined;
  /**
   * The run of the server, if its last reply was `alone`, which means that too few of the other servers have been asked
   * since that run began. Otherwise undefined.
   */
  readonly aloneIn: string | undefined;
  /**
   * Asks the server now, and informs it of leases of `leaseMs`.
   *
   * @param heard  a run of the server, if enough of the other servers have been asked since that run began. `leaseMs`
   *               must then be at least the longest lease that they reported
   * @throws StoreError
   */
  ask(leaseMs: number, timeoutMs: number, heard?: string): Promise<Standing>;
}

/** A server's last answer, and when the request for it was sent. */
export interface LastAnswer {
  readonly standing: Exclude<Standing, { outcome: "hidden" }>;
  readonly askedAtMs: number;
}

/** Like `ServerMemory.ask`, but resolves to undefined if the connection was lost in the meantime. @throws StoreError */
export type AskOfMemory = (leaseMs: number, timeoutMs: number, heard?: string) => Promise<Standing | undefined>;

/** What the server of a cluster slot replies about the slot and about itself. */
export type ShardStanding =
  | {
      /** `whole` if a client has found that this run of the server has every grant ever made in the slot. */
      readonly outcome: "whole" | "foreign";
      /**
       * The last slot that the server serves. The marker in that slot counts for the whole server. -1 unless
       * `withOthers` was set.
       */
      readonly home: number;
      readonly run: string;
      readonly id: string;
      /** The other masters that the server knows, with the last slot of each. Empty unless `withOthers` was set. */
      readonly others: readonly { readonly id: string; readonly home: number }[];
    }
  | { readonly outcome: "hidden" };

/** How many replicas must acknowledge a renewal, and how long they may take, in ms. */
export interface Replicas {
  readonly atLeast: number;
  readonly timeoutMs: number;
}

/** How a store finds out whether the server behind it may grant locks. */
export interface Grace {
  /**
   * The start of a Lua `if`, to which the store appends the id of a run. The condition is true if the server is in any
   * other run. On servers whose replicas do not get scripts, it is always false, because only that run has the script.
   */
  readonly ifOtherRun: string;
  /** The key of the server's marker. In a cluster, the prefix of all marker keys. */
  readonly marker: string;
  /** Set if the server is one of a quorum: see `Store.memory`. */
  readonly memoryOf?: ((last: () => LastAnswer | undefined, ask: AskOfMemory) => ServerMemory) | undefined;
  /**
   * Asks the server that has the marker whether it may grant.
   *
   * @param vouched  in a cluster, a run that is known to be allowed to grant, or an empty string; absent for a single
   *                 server
   * @param heard    in a quorum, a run, if enough of the other servers have been asked since that run began
   * @throws StoreError
   */
  ask(
    run: Store["run"],
    marker: string,
    leaseMs: number,
    timeoutMs: number,
    vouched?: string,
    heard?: string,
  ): Promise<Standing>;
  /**
   * Inspects a cluster slot through its marker. Present if the server may be part of a cluster.
   *
   * @param vouched  a run that is known to have every grant of the slot, or an empty string
   * @param withOthers  whether to list the masters of the cluster
   * @throws StoreError
   */
  readonly inspectSlot?:
    | ((
        run: Store["run"],
        marker: string,
        vouched: string,
        withOthers: boolean,
        timeoutMs: number,
      ) => Promise<ShardStanding>)
    | undefined;
}

/** The quiet time of a server that may not grant yet. */
export interface Quiet {
  /** Remaining quiet time, in ms from now. */
  readonly restMs: number;
  /** Whether the quiet time can end before `restMs` is over, if enough other servers of the quorum reply. */
  readonly isAlone?: boolean | undefined;
}

/** Returns the failure for a request to a server that may not grant now. Its cause says why. */
export function quietFailure({ restMs, isAlone = false }: Quiet): StoreFailure {
  const resumesInMs = Math.ceil(restMs);
  const orUntil = isAlone ? ", or until enough other servers have reported lease lengths" : "";
  const cause = new Error(
    `this server took over from another or was restarted, so it may not know about every held lock: it grants no locks for another ${resumesInMs} ms${orUntil}`,
  );
  // With `isAlone`, `resumesInMs` is left out, because it is unknown when the other servers will report.
  return { mayHaveRun: false, transient: true, cause, ...(!isAlone && { resumesInMs }) };
}

/**
 * The TypeScript description of a Lua script: its text, its hash, and the names of its inputs and outputs.
 *
 * The names come from the script's own header (see scripts/build-lua.mjs), so no code counts `KEYS[n]` by hand or
 * reads unnamed numbers from a reply.
 */
export interface Script<Key extends string = string, Arg extends string = string, Form extends ReplyForm = ReplyForm> {
  /** `<kind>/<verb>`, the path of the .lua file. */
  readonly name: string;
  /** SHA-1 of `source` in lower-case hex, as EVALSHA requires. */
  readonly sha1: string;
  /** Names of the keys. The last name may end in `...`, which means any number of keys. */
  readonly keys: readonly Key[];
  /** Names of the arguments, in the order of `ARGV`. */
  readonly args: readonly Arg[];
  /** All forms of the reply. */
  readonly replies: readonly Form[];
  /** The Lua source text. */
  readonly source: string;
  /**
   * Whether the script can grant a lock to a claim that does not hold it. Such a script is sent only to a server that
   * may grant: see stores/failover-guard.ts. A script without this flag cannot grant.
   */
  readonly grants?: boolean | undefined;
  /** Whether the script only renews a lease, and replies 1 if it did. */
  readonly renews?: boolean | undefined;
  /** True if this stands for plain commands, not a script: `source` names them, and there is no text to load. */
  readonly isNative?: boolean | undefined;
  /** The script without its hand-off, for a server that may not grant yet. Present if only the hand-off can grant. */
  readonly withoutGrant?: ScriptText | undefined;
}

/** The parts of a script that are sent to a server. */
export interface ScriptText {
  readonly sha1: string;
  readonly source: string;
}

/**
 * The SHA-1 of a script, computed on first use. Shipping a hash with each script would make the package 2 kB
 * larger.
 */
export function sha1Of(text: Pick<ScriptText, "source">): string {
  return fixed(text, "sha1", crypto().createHash("sha1").update(text.source).digest("hex"));
}

/** Returns the script `source` with an empty function `name` instead of the one that the fragment `handOff` defines. */
export function inert(source: string, handOff: string, name: string): ScriptText {
  return scriptText(source.replace(handOff, () => `${handOff}\n${name} = function() end`));
}

/** Returns a script with its hash. */
export function scriptText(source: string): ScriptText {
  return { source, sha1: sha1Of({ source }) };
}

/** Replaces a getter of `target` with its value, so that the value is computed only once. Returns the value. */
export function fixed<Value>(target: object, name: string, value: Value): Value {
  Object.defineProperty(target, name, { value, enumerable: true });
  return value;
}

/**
 * One form of a script's reply: one line under REPLY in the script's header.
 *
 * With `code: null`, the reply is a single number, and `values` has only its name. Otherwise the reply is a list: the
 * code, then the numbers named in `values`, then any number of strings, which `rest` names.
 */
export interface ReplyForm {
  /** The first number of the list; null if the reply is a single number. */
  readonly code: number | null;
  /** Name of the form, such as `granted`. */
  readonly outcome: string;
  /** Names of the numbers after the code, in order. */
  readonly values: readonly string[];
  /** Name of the strings after the numbers; null if there are none. */
  readonly rest: string | null;
}

/** A script's reply on the wire: an integer, or a flat list. Null stands for a nil inside a list. */
export type Reply = number | ReadonlyArray<string | number | null>;

/** The same reply with named values, for example `{ outcome: "granted", token: 7 }`. */
export type Outcome<Form extends ReplyForm> = Form extends ReplyForm
  ? { readonly outcome: Form["outcome"] } & {
      readonly [Value in Form["values"][number]]: number;
    } & (Form["rest"] extends string ? { readonly [Rest in Form["rest"] & string]: readonly string[] } : unknown)
  : never;

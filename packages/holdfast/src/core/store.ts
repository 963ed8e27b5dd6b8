/**
 * The store: what core needs of a client library, and the scripts that it runs.
 */
import type { StoreFailure } from "./error-messages.js";
import { crypto } from "./runtime.js";

/**
 * The only door to a server. A store moves script calls out and grants back; it knows no lock kind.
 *
 * A new client library is one new file that implements this interface, and one line in tests/stores.ts
 * that runs every contract on it. See docs/adr/002-store-port.md for why these members and no others.
 */
export interface Store {
  /** What the store talks through, for messages to people: "ioredis", "node-redis", "glide", "embedded". */
  readonly kind: string;

  /**
   * Runs one script atomically, with its inputs in the order of its header.
   *
   * Every call has a deadline of its own, so the promise settles in bounded time on any connection.
   *
   * @param timeoutMs  longest time to wait for the answer
   * @throws StoreError  there was no answer, or the answer was an error; `mayHaveRun` says whether the
   *                     script may have run all the same
   */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], timeoutMs: number): Promise<Reply>;

  /**
   * Listens on `channel` from the moment it resolves until `close` is called.
   *
   * After a dropped connection the store subscribes again by itself, and then calls the listeners of
   * `onReconnect`. What was published in between is lost.
   *
   * @throws UnsupportedError  this client has no way to subscribe, and never will
   * @throws StoreError        it could not subscribe now
   */
  inbox(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;

  /**
   * As `inbox`, on the server that has the slot of the channel's hash tag, so that a script there can count who listens.
   * Present if names live on several servers, as in a cluster: then clients have an inbox in each slot in which they wait.
   */
  shardInbox?(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;

  /**
   * Runs a script that has no keys on every server that grants, as far as the client knows them and they answer soon.
   * Present if there are several, as in a cluster.
   *
   * @throws StoreError  none of them answered
   */
  runOnEach?(script: Script, args: readonly (string | number)[], timeoutMs: number): Promise<readonly Reply[]>;

  /**
   * Calls `listener` each time a connection of this store is ready again after it was lost: the one that
   * sends scripts (a client may have sent a script twice) and the one that listens (messages were missed).
   *
   * @returns stops calling it
   */
  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void;

  /**
   * The key under which the store keeps which run of the server that has `key` may grant locks; undefined if it keeps
   * none. Only where it does, holders put back what a failover has lost.
   */
  lineageKey?(key: string): string | undefined;

  /**
   * Whether a renewal counts for this store only once replicas have it, so that a grant needs one too. `run` then rejects a
   * renewal that too few of them have acknowledged in time.
   */
  readonly confirmsGrants?: boolean | undefined;

  /**
   * Where scripts go at present, as the client library tells it; undefined if it does not, as where names live on several servers.
   * For telemetry alone, so that it must be right in most cases, and quick in all.
   */
  server?(): ServerAddress | undefined;

  /** Present for a server of a quorum whose store asks it what it remembers before it lets it grant. */
  readonly memory?: ServerMemory | undefined;

  /**
   * How the client library notices that its connection is dead, as far as its options say; undefined where they do not. For messages to
   * people alone.
   */
  clientTimeouts?(): ClientTimeouts | undefined;

  /** Closes what the store itself opened, never what the caller passed in. A second call does nothing. */
  close(): Promise<void>;
}

/** Where a server is, in the words in which the client was told of it. */
export interface ServerAddress {
  /** Name, IP address, or path of a socket. */
  readonly host: string;
  /** Undefined for a socket that has a path. */
  readonly port: number | undefined;
}

/** What a client library does about a connection that is dead without having been closed: see docs/half-open-connections.md. */
export interface ClientTimeouts {
  /** Such as "ioredis". */
  readonly library: string;
  /** How long the client waits for data before it replaces the connection; undefined if that is not set. */
  readonly socketTimeoutMs: number | undefined;
  /** How long a connection is silent before the operating system checks it; undefined if the options do not say. */
  readonly keepAliveMs: number | undefined;
  /** What to do so that a dead connection is replaced; undefined if the client does that by itself. */
  readonly cure: string | undefined;
}

/** An open subscription to one channel. */
export interface Inbox {
  /**
   * False if the servers cannot count who listens here (a cluster before Redis 7): then a waiter that is gone may be
   * granted, and the others ask more often.
   *
   * @default true
   */
  readonly isCounted?: boolean | undefined;
  /**
   * The connection that it is heard over at present, which other inboxes may share. Absent where all inboxes of the store
   * share one.
   */
  readonly connection?: string | undefined;
  /**
   * Replaces that connection. All its inboxes subscribe on the new one before the old one is closed; then the listeners of
   * `onReconnect` are called. Absent where a store has no other connection to offer.
   *
   * @throws whatever kept it from subscribing on a new connection; the old one may be closed all the same
   */
  reopen?(timeoutMs: number): Promise<void>;
  /** Stops listening. A second call does nothing. Never rejects. */
  close(): Promise<void>;
}

/** What a server says of itself, when it is asked whether it may grant locks. `run` is what it calls its present run. */
export type Standing =
  /** It may grant leases of that length; of longer ones it is to be told first. */
  | { readonly outcome: "settled"; readonly longestMs: number; readonly run: string }
  /**
   * It took over from another, or was restarted, and may not grant for so long; `alone` if that ends sooner when enough of the
   * other servers of its quorum have told how long leases are.
   */
  | { readonly outcome: "quiet" | "alone"; readonly longestMs: number; readonly restMs: number; readonly run: string }
  /** It does not say. */
  | { readonly outcome: "hidden" };

/** What is known of the memory of one server of a quorum (docs/adr/131-longest-lease-on-a-quorum.md). */
export interface ServerMemory {
  /** The run of the server that may grant and has been told of leases so long; undefined if it has to be asked first. */
  knows(leaseMs: number): string | undefined;
  /** The run of the server for which too few others were asked, if that was the last that it said. */
  readonly aloneIn: string | undefined;
  /**
   * Asks the server now, and tells it of leases so long.
   *
   * @param heard  a run of it since whose beginning enough of the others were asked; `leaseMs` is no shorter than what they told
   * @throws StoreError
   */
  ask(leaseMs: number, timeoutMs: number, heard?: string): Promise<Standing>;
}

/** What the server of a slot in a cluster says of the slot and of itself. */
export type ShardStanding =
  | {
      /** `whole`: somebody has found that this run of the server has all that was ever granted in the slot. */
      readonly outcome: "whole" | "foreign";
      /** The last slot that it serves, whose marker speaks for all of it. Known if others were asked for. */
      readonly home: number;
      readonly run: string;
      readonly id: string;
      /** The other masters that it knows, if they were asked for, with the last slot of each. */
      readonly others: readonly { readonly id: string; readonly home: number }[];
    }
  | { readonly outcome: "hidden" };

/** How many replicas must have a renewal, and how long they may take. */
export interface Replicas {
  readonly atLeast: number;
  readonly timeoutMs: number;
}

/** How a store finds out whether the server behind it may grant locks. */
export interface Grace {
  /** Key of the marker that speaks for the server; in a cluster, what the keys of its markers begin with. */
  readonly marker: string;
  /** Whether the server is one of a quorum. */
  readonly isOfQuorum?: boolean | undefined;
  /**
   * Asks the server that has the marker.
   *
   * @param vouched  in a cluster: a run of which is known that it may grant, or an empty text. Absent for a single server
   * @param heard    in a quorum: a run since whose beginning enough of the other servers were asked
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
   * Looks at a slot of a cluster by its marker.
   *
   * @param vouched  a run that is known to have all of the slot, or an empty text
   * @param withOthers  whether to list the masters of the cluster
   * @throws StoreError
   */
  look(
    run: Store["run"],
    marker: string,
    vouched: string,
    withOthers: boolean,
    timeoutMs: number,
  ): Promise<ShardStanding>;
}

/** Until when a server grants nothing. */
export interface Quiet {
  /** In ms from now. */
  readonly restMs: number;
  /** Whether it ends sooner if other servers of its quorum answer. */
  readonly isAlone?: boolean | undefined;
}

/** Why a server grants nothing now, as the failure of a request. */
export function quietFailure({ restMs, isAlone }: Quiet): StoreFailure {
  const resumesInMs = Math.ceil(restMs);
  if (isAlone !== true) {
    const cause = new Error(
      `this server took over from another or was restarted, and may not know of every lock that is held: it grants none for ${resumesInMs} ms more`,
    );
    return { mayHaveRun: false, transient: true, cause, resumesInMs };
  }
  const cause = new Error(
    `this server was restarted and may have forgotten leases, and too few of the other servers have said how long leases are: it grants none until they do, or for ${resumesInMs} ms more`,
  );
  // When the others answer is not known, so there is no time to name.
  return { mayHaveRun: false, transient: true, cause };
}

/**
 * A Lua script as TypeScript sees it: text, hash, and the names of what goes in and comes out.
 *
 * The names are those of the script's own header (see scripts/build-lua.mjs), so
 * no `KEYS[n]` is counted by hand and no caller reads a bare number.
 */
export interface Script<Key extends string = string, Arg extends string = string, Form extends ReplyForm = ReplyForm> {
  /** `<kind>/<verb>`, the path of the .lua file. */
  readonly name: string;
  /** Lower-case hex SHA-1 of `source`, as EVALSHA wants it. */
  readonly sha1: string;
  /** A name that ends in `...`, the last if any, stands for any number of keys. */
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  readonly replies: readonly Form[];
  readonly source: string;
  /**
   * Whether it can make a holder of somebody who was none. Then it reaches a server only that may grant: see
   * stores/grace.ts. A script that does not say so counts as one that cannot.
   */
  readonly grants?: boolean | undefined;
  /** Whether it begins a lease anew and does nothing else, and answers 1 when it has. */
  readonly renews?: boolean | undefined;
  /** The same script without its hand-off, for a server that may not grant yet; absent if nothing would be left of it. */
  readonly withoutGrant?: ScriptText | undefined;
}

/** What a server is sent of a script. */
export interface ScriptText {
  readonly sha1: string;
  readonly source: string;
}

/** The hash of a text, computed when it is first asked for: to ship one with each text would make the package larger by 2 kB. */
export function sha1Of(text: Pick<ScriptText, "source">): string {
  const sha1 = crypto().createHash("sha1").update(text.source).digest("hex");
  // The next reader finds the hash itself in place of the getter.
  Object.defineProperty(text, "sha1", { value: sha1, enumerable: true });
  return sha1;
}

/**
 * One line under REPLY.
 *
 * `code: null` is an answer that is one bare number, whose name is the only entry of `values`;
 * otherwise the code comes first and the named numbers follow. `rest` names what may come after them:
 * any number of strings, in scripts that only read.
 */
export interface ReplyForm {
  readonly code: number | null;
  readonly outcome: string;
  readonly values: readonly string[];
  readonly rest: string | null;
}

/** What a script answers on the wire: an integer, or a flat list. Null stands for nil inside a list. */
export type Reply = number | ReadonlyArray<string | number | null>;

/** The same answer with its words, e.g. `{ outcome: "granted", token: 7 }`. */
export type Outcome<Form extends ReplyForm> = Form extends ReplyForm
  ? { readonly outcome: Form["outcome"] } & {
      readonly [Value in Form["values"][number]]: number;
    } & (Form["rest"] extends string ? { readonly [Rest in Form["rest"] & string]: readonly string[] } : unknown)
  : never;

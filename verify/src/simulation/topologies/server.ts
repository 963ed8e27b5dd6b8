/**
 * One of several servers: an embedded one with a clock, a script cache, and a life of its own, which INFO tells of.
 *
 * A script is known only to the run of the server that was taught it: that is how the library notices a server that has
 * begun anew, so the cache is kept here and not by the embedded server, which would take a script with its text.
 */
import { createHash } from "node:crypto";
import { type DumpedKey, type EmbeddedStore, embedded, Keyspace } from "@holdfast/embedded";
import { type Reply, type Script, StoreError } from "holdfast";
import { ServerClock } from "../clocks.js";
import { restore, type Snapshot } from "./snapshot.js";

/** What a server needs of the world. */
export interface Ground {
  readonly nowMs: number;
  readonly scheduler: { schedule(task: () => void): void };
  trace(text: string): void;
  /** The script as it is to be run, which is another one in a test of the simulation itself. */
  scriptOf(script: Script): Script;
}

/** How the clock of a server goes, against true time. */
export interface ServerClocks {
  readonly aheadMs: number;
  readonly rate: number;
}

/** What `load` is called on its way to the server. */
export const LOAD = "script/load";

/** Where scripts find what INFO would say. */
const INFO = { server: "info:server", replication: "info:replication" };
const TELL = "redis.call('SET', KEYS[1], ARGV[1])\nredis.call('SET', KEYS[2], ARGV[2])\nreturn 0";

/** Long enough that nobody takes it for one that was started just now: a server of a quorum may be one for an hour. */
const FIRST_UP_MS = 7_200_000;
const NEVER_PROMOTED = "0".repeat(40);

/** See the file header. */
export class SimulatedServer {
  readonly name: string;
  readonly index: number;
  readonly clock: ServerClock;
  readonly keyspace: Keyspace;
  /** Called after each script that it has carried out. */
  onWritten: () => void = () => {};
  isDown = false;
  frozenUntilMs = 0;
  /** As before Redis 7: who follows it gets its scripts too. */
  sharesScripts = false;
  /** How often it has taken over. */
  promotions = 0;
  readonly #ground: Ground;
  readonly #known = new Map<string, Script>();
  #runs = 0;
  #upSinceMs = -FIRST_UP_MS;
  #replication: string;
  #formerReplication = NEVER_PROMOTED;

  constructor(ground: Ground, index: number, { aheadMs, rate }: ServerClocks) {
    this.#ground = ground;
    this.index = index;
    this.name = `server ${index}`;
    this.clock = new ServerClock(() => ground.nowMs * rate + aheadMs);
    this.keyspace = new Keyspace({ clock: this.clock, scheduler: ground.scheduler });
    this.#replication = idOf(`replication of ${this.name}`);
  }

  /** Rises whenever its connections are gone. */
  get runs(): number {
    return this.#runs;
  }

  /** What its replicas call what they follow. */
  get replication(): string {
    return this.#replication;
  }

  /** Forgets all scripts. */
  flushScripts(): void {
    this.#known.clear();
  }

  /** Gets all scripts of the server that it follows. */
  learnFrom(master: SimulatedServer): void {
    for (const [sha1, script] of master.#known) this.#known.set(sha1, script);
  }

  /** It is started again, with all that it knew or with nothing. */
  restart(keepsKeys: boolean): void {
    this.#runs += 1;
    this.isDown = false;
    this.#known.clear();
    this.#upSinceMs = this.#ground.nowMs;
    this.#formerReplication = NEVER_PROMOTED;
    this.#replication = idOf(`replication of ${this.name}, run ${this.#runs}`);
    if (!keepsKeys) this.keyspace.clear();
  }

  /** Its connections are closed, as when it becomes a replica of another. Its process lives on and knows its scripts. */
  demote(replication: string): void {
    this.#runs += 1;
    this.#replication = replication;
    this.#formerReplication = NEVER_PROMOTED;
  }

  /** It takes over, with what it has got of the server before it. */
  promote(times: number, has: Snapshot): void {
    this.promotions += 1;
    this.#formerReplication = this.#replication;
    this.#replication = idOf(`replication of ${this.name}, promotion ${times}`);
    this.isDown = false;
    restore(this.keyspace, has, this.clock.nowUs() / 1_000);
  }

  /**
   * Whether it was started again, and as far as it has been told nobody has asked the other servers of its quorum
   * since how long
   * leases are.
   */
  get isAlone(): boolean {
    if (this.#runs === 0) return false;
    const marker = this.keyspace.dump().find(({ key }) => key === "hf:lineage")?.value ?? [];
    const isIn = (field: string): boolean =>
      marker[marker.indexOf(field) + 1] === this.#runId && marker.includes(field);
    return !isIn("run") && !isIn("heard");
  }

  get #runId(): string {
    return idOf(`${this.name}, process ${this.#upSinceMs}`);
  }

  /** What clients have put there. */
  keys(): DumpedKey[] {
    return this.keyspace.dump().filter(({ key }) => key !== INFO.server && key !== INFO.replication);
  }

  /** All that it holds now, with the ends of leases by its own clock, as they are told to a replica. */
  snapshot(): Snapshot {
    const nowMs = Math.floor(this.clock.nowUs() / 1_000);
    const endOf = ({ leftMs }: DumpedKey): number => (leftMs < 0 ? Number.POSITIVE_INFINITY : nowMs + leftMs);
    return this.keys().map((key) => ({ ...key, endsAtMs: endOf(key) }));
  }

  /** A connection to the present run of it. What comes when that is over is lost. */
  connection(): EmbeddedStore {
    const link = embedded({ keyspace: this.keyspace });
    const run = this.#runs;
    return {
      kind: "embedded",
      keyspace: this.keyspace,
      run: (script, keys, args) => (run === this.#runs ? this.#run(link, script, keys, args) : new Promise(() => {})),
      inbox: (channel, onMessage, timeoutMs) => link.inbox(channel, onMessage, timeoutMs),
      onReconnect: () => () => {},
      dropConnection: () => {},
      close: () => link.close(),
    };
  }

  #run(
    link: EmbeddedStore,
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    if (script.name === LOAD) {
      this.#known.set(script.sha1, script);
      return Promise.resolve(1);
    }
    const known = this.#known.get(script.sha1);
    if (known === undefined) {
      const cause = new Error("NOSCRIPT No matching script. Please use EVAL.");
      return Promise.reject(new StoreError(script.name, { mayHaveRun: false, transient: true, cause }));
    }
    // Done immediately, so that a mistake that cannot be made ends the run.
    return this.#play(link, this.#ground.scriptOf({ ...script, source: known.source }), keys, args);
  }

  async #play(
    link: EmbeddedStore,
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const asks = script.source.includes("redis.pcall('INFO'");
    if (asks) await this.#inform();
    const reply = await link.run(asks ? informed(script, this.sharesScripts) : script, keys, args, 0);
    this.onWritten();
    return reply;
  }

  /** Puts down where a script finds it what INFO says here, since an embedded server has none. */
  async #inform(): Promise<void> {
    const upSeconds = Math.floor((this.#ground.nowMs - this.#upSinceMs) / 1_000);
    const server = `run_id:${this.#runId}\r\nuptime_in_seconds:${upSeconds}\r\n`;
    const replication = `master_replid:${this.#replication}\r\nmaster_replid2:${this.#formerReplication}\r\n`;
    await this.keyspace.eval(TELL, [INFO.server, INFO.replication], [server, replication]);
  }
}

/** The script, which looks there for what INFO says. An embedded server does not say which version it is either. */
function informed(script: Script, sharesScripts: boolean): Script {
  const source = script.source
    .replaceAll("not redis.REDIS_VERSION_NUM", String(sharesScripts))
    .replaceAll("redis.pcall('INFO', 'server')", `redis.call('GET', '${INFO.server}')`)
    .replaceAll("redis.pcall('INFO', 'replication')", `redis.call('GET', '${INFO.replication}')`);
  return { ...script, source, sha1: idOf(source) };
}

/** Forty digits that nothing else has. */
export function idOf(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

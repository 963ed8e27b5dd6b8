/**
 * One of several servers: an embedded server with its own clock, script cache and incarnation, which INFO reports.
 *
 * A script is known only to the incarnation into which it was loaded, because that is how the library detects a
 * restarted server. So the cache is kept here; the embedded server would accept a script with its text.
 */
import { createHash } from "node:crypto";
import { type DumpedKey, type EmbeddedStore, embedded, Keyspace } from "@holdfast/embedded";
import { type Reply, type Script, StoreError } from "holdfast";
import { ServerClock } from "../clocks.js";
import { restore, type Snapshot } from "./snapshot.js";

/** What a server needs from the world. */
export interface Ground {
  readonly nowMs: number;
  readonly scheduler: { schedule(task: () => void): void };
  trace(text: string): void;
  /** The script to run, which a test of the simulation may replace. */
  scriptOf(script: Script): Script;
}

/** The rate of the server's clock, relative to true time. */
export interface ServerClocks {
  readonly aheadMs: number;
  readonly rate: number;
}

/** The name of a `load` request. */
export const LOAD = "script/load";

/** The keys from which scripts read the simulated INFO. */
const INFO = { server: "info:server", replication: "info:replication" };
const TELL = "redis.call('SET', KEYS[1], ARGV[1])\nredis.call('SET', KEYS[2], ARGV[2])\nreturn 0";

/** Long enough that the server does not look newly started: a quorum may keep a server out for up to an hour. */
const FIRST_UP_MS = 7_200_000;
const NEVER_PROMOTED = "0".repeat(40);

/** A simulated server. */
export class SimulatedServer {
  readonly name: string;
  readonly index: number;
  readonly clock: ServerClock;
  readonly keyspace: Keyspace;
  /** Called after each script. */
  onWritten: () => void = () => {};
  isDown = false;
  frozenUntilMs = 0;
  /** Whether its replicas also get its scripts, as before Redis 7. */
  sharesScripts = false;
  /** The number of its promotions. */
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

  /** Increases whenever its connections are closed. */
  get runs(): number {
    return this.#runs;
  }

  /** The replication id. */
  get replication(): string {
    return this.#replication;
  }

  /** Removes all scripts from the cache. */
  flushScripts(): void {
    this.#known.clear();
  }

  /** Copies all scripts of its master. */
  learnFrom(master: SimulatedServer): void {
    for (const [sha1, script] of master.#known) this.#known.set(sha1, script);
  }

  /** Restarts it, with or without its data. */
  restart(keepsKeys: boolean): void {
    this.#runs += 1;
    this.isDown = false;
    this.#known.clear();
    this.#upSinceMs = this.#ground.nowMs;
    this.#formerReplication = NEVER_PROMOTED;
    this.#replication = idOf(`replication of ${this.name}, run ${this.#runs}`);
    if (!keepsKeys) this.keyspace.clear();
  }

  /** Closes its connections, as when it becomes a replica. Its process continues and keeps its scripts. */
  demote(replication: string): void {
    this.#runs += 1;
    this.#replication = replication;
    this.#formerReplication = NEVER_PROMOTED;
  }

  /** Promotes it, with the data received from its master. */
  promote(times: number, has: Snapshot): void {
    this.promotions += 1;
    this.#formerReplication = this.#replication;
    this.#replication = idOf(`replication of ${this.name}, promotion ${times}`);
    this.isDown = false;
    restore(this.keyspace, has, this.clock.nowUs() / 1_000);
  }

  /**
   * Whether it was restarted and, as far as it knows, no client has since asked the other servers of the quorum for
   * their lease lengths.
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

  /** The keys that clients have written. */
  keys(): DumpedKey[] {
    return this.keyspace.dump().filter(({ key }) => key !== INFO.server && key !== INFO.replication);
  }

  /** All of its data, with expiry times on its own clock, as replicas receive it. */
  snapshot(): Snapshot {
    const nowMs = Math.floor(this.clock.nowUs() / 1_000);
    const endOf = ({ leftMs }: DumpedKey): number => (leftMs < 0 ? Number.POSITIVE_INFINITY : nowMs + leftMs);
    return this.keys().map((key) => ({ ...key, endsAtMs: endOf(key) }));
  }

  /** A connection to its current incarnation. Requests that arrive after that has ended are lost. */
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
    // Runs immediately, so that a mutation that cannot be applied ends the run.
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

  /** Writes the simulated INFO for scripts to read, because an embedded server has none. */
  async #inform(): Promise<void> {
    const upSeconds = Math.floor((this.#ground.nowMs - this.#upSinceMs) / 1_000);
    const server = `run_id:${this.#runId}\r\nuptime_in_seconds:${upSeconds}\r\n`;
    const replication = `master_replid:${this.#replication}\r\nmaster_replid2:${this.#formerReplication}\r\n`;
    await this.keyspace.eval(TELL, [INFO.server, INFO.replication], [server, replication]);
  }
}

/** A script that reads the simulated INFO, and the version, which an embedded server lacks too. */
function informed(script: Script, sharesScripts: boolean): Script {
  const source = script.source
    .replaceAll("not redis.REDIS_VERSION_NUM", String(sharesScripts))
    .replaceAll("redis.pcall('INFO', 'server')", `redis.call('GET', '${INFO.server}')`)
    .replaceAll("redis.pcall('INFO', 'replication')", `redis.call('GET', '${INFO.replication}')`);
  return { ...script, source, sha1: idOf(source) };
}

/** A unique id of forty digits. */
export function idOf(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

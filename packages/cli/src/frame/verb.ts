/**
 * What a verb is, and what it is given.
 *
 * To add one: `src/verbs/<verb>.ts` exports a `Verb`, and `frame/verbs-table.ts` names its module. The frame parses the
 * command line with the verb's options and the common flags, answers `--help`, turns what the verb throws into one line on
 * stderr and an exit code, and exits with the number that `run` resolves to.
 */
import type { Holdfast } from "holdfast";
import type { Cluster, Redis } from "ioredis";
import type { CommonFlags, Topology } from "./flags.js";
import type { Streams } from "./streams.js";
import type { Options, Values } from "./values.js";

/** One verb of the command. */
export interface Verb {
  readonly name: string;
  /** `holdfast run NAME [flags] -- cmd [args]`; several lines if there are several forms. */
  readonly usage: string;
  /**
   * What `holdfast help VERB` prints below the usage: plain text, at most 100 columns. The common flags are added. A function
   * loads it when it is asked for.
   */
  readonly help: string | (() => Promise<string>);
  readonly options: Options;
  /** Whether a command may stand after `--`; what stands there is refused otherwise. */
  readonly takesCommand?: boolean;
  /**
   * Does it.
   *
   * @returns the exit code
   * @throws CliError  one line and a code; errors of the library become 65, 69, 75 or 77, anything else 125
   */
  run(call: Call): Promise<number>;
}

/** What the verb was called with. */
export interface Call {
  readonly values: Values;
  readonly positionals: readonly string[];
  /** What stood after `--`; undefined if there was no `--`. */
  readonly command: readonly string[] | undefined;
  readonly common: CommonFlags;
  readonly streams: Streams;
  /**
   * Connects to the Redis of the common flags. Whoever calls it closes what it returns.
   *
   * @throws CliError 64  no URL, or several without a topology
   * @throws CliError 69  nobody answered within `--connect-timeout`
   * @throws CliError 77  authentication or ACL
   */
  connect(options?: ConnectOptions): Promise<Connection>;
}

/** How a verb wants to be connected. */
export interface ConnectOptions {
  /** Ends the attempt; then `connect` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** Whoever answers is enough, also a cluster that serves nobody, or one of several servers: to look into what is wrong. */
  readonly isBrokenToo?: boolean;
}

/** A way to the locks, and to the servers behind them. */
export interface Connection {
  readonly topology: Topology;
  readonly holdfast: Holdfast;
  /**
   * The clients that `holdfast` is made on: one, or with `--redlock` one for each server in the order of the URLs. Commands
   * on them have no deadline of their own but `--command-timeout`.
   */
  readonly clients: readonly (Redis | Cluster)[];
  /** Every primary: the one server, the primary that the Sentinels name, each of the cluster, each of the quorum. */
  nodes(): readonly Redis[];
  /** Where it is, for messages and pages: without passwords. */
  readonly address: string;
  readonly prefix: string;
  /** Closes `holdfast`, which gives back what is still held, and then the clients. Never rejects. */
  close(): Promise<void>;
}

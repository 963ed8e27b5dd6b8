/**
 * Defines a verb and what it receives.
 *
 * To add a verb, export a `Verb` from `src/verbs/<verb>.ts` and add its module to `frame/verbs-table.ts`. The frame
 * parses the command line with the verb's options and the common flags, and answers `--help`. It turns an error from
 * the verb into one line on stderr and an exit code. Otherwise it exits with the number that `run` resolves to.
 */
import type { Holdfast } from "holdfast";
import type { Cluster, Redis } from "ioredis";
import type { CommonFlags, Topology } from "./flags.js";
import type { Streams } from "./streams.js";
import type { Options, Values } from "./values.js";

/** One verb of the command. */
export interface Verb {
  readonly name: string;
  /** For example `holdfast run NAME [flags] -- cmd [args]`. Has one line for each form of the verb. */
  readonly usage: string;
  /**
   * The text that `holdfast help VERB` prints below the usage: plain text, at most 77 columns. The common flags are
   * added automatically. A function loads the text only when it is needed.
   */
  readonly help: string | (() => Promise<string>);
  readonly options: Options;
  /** Whether the verb takes a command after `--`. If not, a command is refused. */
  readonly takesCommand?: boolean;
  /**
   * Runs the verb.
   *
   * @returns the exit code
   * @throws CliError  one line and a code; errors from the library become 64, 65, 69, 75, 77 or 123, anything else 125
   */
  run(call: Call): Promise<number>;
}

/** The input of one call of a verb. */
export interface Call {
  readonly values: Values;
  readonly positionals: readonly string[];
  /** The words after `--`; undefined if there was no `--`. */
  readonly command: readonly string[] | undefined;
  readonly common: CommonFlags;
  readonly streams: Streams;
  /**
   * Connects to the Redis that the common flags name. The caller must close the returned connection.
   *
   * @throws CliError 64  no URL, or several without a topology
   * @throws CliError 69  no server answered within `--connect-timeout`
   * @throws CliError 77  authentication or ACL
   */
  connect(options?: ConnectOptions): Promise<Connection>;
}

/** Options of `Call.connect`. */
export interface ConnectOptions {
  /** Aborting it ends the attempt. Then `connect` rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * Connects even if the cluster serves no requests, or if only one of several servers answers. For verbs that examine
   * broken setups.
   */
  readonly isBrokenToo?: boolean;
}

/** A connection to the locks, and to the servers behind them. */
export interface Connection {
  readonly topology: Topology;
  readonly holdfast: Holdfast;
  /**
   * The clients that `holdfast` uses: one, or with `--redlock` one for each server in the order of the URLs.
   * `--command-timeout` is the only deadline of their commands.
   */
  readonly clients: readonly (Redis | Cluster)[];
  /**
   * All primaries: the single server, the primary that the Sentinels name, every primary of the cluster, or every
   * server of the quorum.
   */
  nodes(): readonly Redis[];
  /** The address for messages and pages, without passwords. */
  readonly address: string;
  readonly prefix: string;
  /** Closes `holdfast`, which releases everything that it still holds, and then the clients. Never rejects. */
  close(): Promise<void>;
}

/** An embedded server without its network. Each call takes effect immediately. */
import { type Bytes, toBytes, toText } from "./bytes.js";
import type { Clock } from "./clock.js";
import { execute } from "./commands/table.js";
import { Database } from "./database.js";
import { type Chunk, type Interpreter, loadedInterpreter } from "./lua/interpreter.js";
import type { ScriptReply } from "./lua/values.js";
import { ReplyError } from "./reply.js";
import type { Scheduler } from "./scheduler.js";

/** The server's side of a connection with subscriptions. */
export interface Subscriber {
  /** Called in a separate task for each message. A message may arrive after the subscription has ended. */
  deliver(channel: Bytes, message: Bytes): void;
}

/** The keys, scripts and subscriptions of an embedded server. Load the interpreter before you run a script. */
export class Server {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly #database = new Database();
  readonly #scripts = new Map<string, Chunk>();
  readonly #subscribers = new Map<Bytes, Set<Subscriber>>();

  constructor(clock: Clock, scheduler: Scheduler) {
    this.clock = clock;
    this.scheduler = scheduler;
  }

  /** Returns the database, with its clock set to the current time. */
  database(): Database {
    this.#database.freeze(Math.floor(this.clock.nowUs() / 1000));
    return this.#database;
  }

  /**
   * Runs a known script.
   *
   * @throws ReplyError  NOSCRIPT, or the error from the script; its message is Unicode text, not bytes
   */
  evalsha(sha1: string, keys: readonly string[], args: readonly (string | number)[]): ScriptReply {
    const chunk = this.#scripts.get(sha1);
    if (chunk === undefined) throw new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
    return this.#run(chunk, keys, args);
  }

  /**
   * Compiles, stores and runs a script.
   *
   * @throws ReplyError  invalid Lua, or the error from the script; its message is Unicode text, not bytes
   */
  eval(source: string, keys: readonly string[], args: readonly (string | number)[]): ScriptReply {
    const chunk = asText(() => interpreter().compile(source));
    this.#scripts.set(chunk.sha1, chunk);
    return this.#run(chunk, keys, args);
  }

  /** Subscribes to a channel. A second call has no effect. */
  subscribe(channel: Bytes, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(channel);
    if (subscribers === undefined) this.#subscribers.set(channel, new Set([subscriber]));
    else subscribers.add(subscriber);
  }

  /** Ends a subscription. */
  unsubscribe(channel: Bytes, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(channel);
    subscribers?.delete(subscriber);
    if (subscribers?.size === 0) this.#subscribers.delete(channel);
  }

  /** Deletes all scripts, like SCRIPT FLUSH. */
  flushScripts(): void {
    this.#scripts.clear();
  }

  /** Deletes all keys and scripts. Connections and their subscriptions remain. */
  clear(): void {
    this.#database.clear();
    this.#scripts.clear();
  }

  #run(chunk: Chunk, keys: readonly string[], args: readonly (string | number)[]): ScriptReply {
    const nowUs = this.clock.nowUs();
    const database = this.#database;
    database.freeze(Math.floor(nowUs / 1000));
    const context = {
      database,
      nowUs,
      publish: (channel: Bytes, message: Bytes) => this.#publish(channel, message),
      subscribers: (channel: Bytes) => this.#subscribers.get(channel)?.size ?? 0,
    };
    return asText(() =>
      textOf(
        interpreter().run(
          chunk,
          keys.map(toBytes),
          args.map((arg) => toBytes(String(arg))),
          (words) => execute(context, words),
        ),
      ),
    );
  }

  #publish(channel: Bytes, message: Bytes): number {
    const subscribers = this.#subscribers.get(channel);
    if (subscribers === undefined) return 0;
    for (const subscriber of subscribers) this.scheduler.schedule(() => subscriber.deliver(channel, message));
    return subscribers.size;
  }
}

/** The cast is safe because callers wait for the interpreter before they run a script. */
function interpreter(): Interpreter {
  return loadedInterpreter() as Interpreter;
}

function textOf(reply: ScriptReply): ScriptReply {
  if (typeof reply === "string") return toText(reply);
  return typeof reply === "number" || reply === null ? reply : reply.map(textOf);
}

function asText<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof ReplyError ? new ReplyError(toText(error.message)) : error;
  }
}

/**
 * A server whose whole state is a value: the transition function of a search. Each call loads the state into an embedded
 * server, runs the script, and reads the new state. Results are cached by call and state.
 */
import { type DumpedKey, embedded, Keyspace, type Scheduler, type ScriptReply } from "@holdfast/embedded";
import { leftAfter } from "./canonical.js";

/** The content of a server: key, type, value, and time to live in ms (-1 for none). */
export type Held = readonly (readonly [string, DumpedKey["type"], string | readonly string[], number])[];

/** A script call. */
export interface Call {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** The result of a call. */
export interface Outcome {
  readonly held: Held;
  readonly reply: number | readonly (number | string | null)[];
  /** The channel and message of each publication, in order. */
  readonly told: readonly (readonly [string, string])[];
}

/** More would fill the memory before a large world is searched completely. */
const REMEMBERED = 300_000;

const RESTORE = `
local at = 1
while ARGV[at] do
  local key, sort, left, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local first = at + 4
  if sort == 'string' then
    redis.call('SET', key, ARGV[first])
  end
  for i = first, first + count - 1, 2 do
    if sort == 'hash' then
      redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    elseif sort == 'zset' then
      redis.call('ZADD', key, ARGV[i + 1], ARGV[i])
    end
  end
  if left ~= '-1' then
    redis.call('PEXPIRE', key, left)
  end
  at = first + count
end
return 0
`;

/** An embedded server. There is one for each set of subscribed clients, because subscriptions are part of a server. */
class Machine {
  readonly #keyspace: Keyspace;
  readonly #tasks: (() => void)[] = [];
  readonly #told: (readonly [string, string])[] = [];
  #nowUs = 0;
  #holds = "[]";

  constructor() {
    const scheduler: Scheduler = { schedule: (task) => void this.#tasks.push(task) };
    this.#keyspace = new Keyspace({ clock: { nowUs: () => this.#nowUs }, scheduler });
  }

  async listen(channels: readonly string[]): Promise<void> {
    const store = embedded({ keyspace: this.#keyspace });
    for (const channel of channels) {
      const opened = store.inbox(channel, (message) => void this.#told.push([channel, message]), 1_000);
      this.#runTasks();
      await opened;
    }
  }

  async run(held: Held, heldText: string, nowUs: number, source: string, call: Call): Promise<Outcome> {
    this.#nowUs = nowUs;
    if (heldText !== this.#holds) {
      this.#keyspace.clear();
      const words = held.flatMap(([key, type, value, left]) =>
        typeof value === "string" ? [key, type, left, 1, value] : [key, type, left, value.length, ...value],
      );
      await this.#keyspace.eval(RESTORE, [], words);
    }
    const reply = replyOf(await this.#keyspace.eval(source, call.keys, call.args));
    this.#runTasks();
    const told = this.#told.splice(0);
    const after: Held = this.#keyspace
      .dump()
      .map(({ key, type, value, leftMs }) => [key, type, renumbered(key, value), leftAfter(leftMs, 0) ?? 0]);
    this.#holds = JSON.stringify(after);
    return { held: after, reply, told };
  }

  #runTasks(): void {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) task();
  }
}

/** Runs calls, each in the state that the caller passes. */
export class Server {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #machines = new Map<string, Machine>();
  readonly #known = new Map<string, Outcome>();
  /** The number of calls that were run, not taken from the cache. */
  ran = 0;

  /** @param texts  the sources of the scripts, by name */
  constructor(texts: ReadonlyMap<string, string>) {
    this.#texts = texts;
  }

  /** Runs `call` at `nowUs` on a server with the content `held` and with subscribers of the channels `listening`. */
  async run(held: Held, nowUs: number, listening: readonly string[], call: Call): Promise<Outcome> {
    const heldText = JSON.stringify(held);
    const id = `${heldText}|${nowUs}|${listening.join()}|${call.script}|${call.keys.join()}|${call.args.join()}`;
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const source = this.#texts.get(call.script);
    if (source === undefined) throw new Error(`there is no script ${call.script}`);
    const machine = await this.#machine(listening);
    const outcome = await machine.run(held, heldText, nowUs, source, call);
    this.ran += 1;
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(id, outcome);
    return outcome;
  }

  async #machine(listening: readonly string[]): Promise<Machine> {
    const id = listening.join();
    let machine = this.#machines.get(id);
    if (machine === undefined) {
      machine = new Machine();
      await machine.listen(listening);
      this.#machines.set(id, machine);
    }
    return machine;
  }
}

/** Arrival numbers of queues start at 1. The next one is always the highest + 1. */
function renumbered(key: string, value: string | readonly string[]): string | readonly string[] {
  const isQueue = (key === "q" || key === "c") && typeof value !== "string";
  return isQueue ? value.map((word, i) => (i % 2 === 0 ? word : String((i + 1) / 2))) : value;
}

/** The content of a server one tick later. */
export function afterTick(held: Held, tickMs: number): Held {
  return held.flatMap(([key, type, value, leftMs]) => {
    const left = leftAfter(leftMs, tickMs);
    return left === undefined ? [] : [[key, type, value, left] as const];
  });
}

function replyOf(reply: ScriptReply): Outcome["reply"] {
  if (typeof reply === "number") return reply;
  if (reply === null || typeof reply === "string") throw new Error("a script must return a number or a list");
  return reply.map((item) => {
    if (typeof item === "object" && item !== null) throw new Error("a script must return a flat list");
    return item;
  });
}

/**
 * Calls scripts, and limits how many cleanup requests run at the same time.
 */
import { namedAfter, StoreError } from "./errors.js";
import { type CommandEvent, channels, serverOf } from "./events.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import type { Outcome, Reply, ReplyForm, Script, Store } from "./store.js";

/** A store and a lock name. Every error from a script call contains that name. */
export interface NamedStore {
  readonly store: Pick<Store, "run" | "server">;
  /** Name of the lock. */
  readonly name: string;
}

/** A script's keys by name. A name that ends in `...` stands for any number of keys. */
export type Keys<Key extends string> = {
  readonly [Name in Key]: Name extends `${string}...` ? readonly string[] : string;
};

/**
 * Runs a script. Keys, arguments and reply use the names in the script's header.
 *
 * Every acquire and release calls this function, so for speed it uses plain loops, and callbacks instead of `await`.
 *
 * @throws StoreError  the request failed, or the header does not list the reply
 */
export function call<Key extends string, Arg extends string, Form extends ReplyForm>(
  { store, name: lockName }: NamedStore,
  script: Script<Key, Arg, Form>,
  keys: Keys<NoInfer<Key>>,
  args: Readonly<Record<NoInfer<Arg>, string | number>>,
  timeoutMs: number,
): Promise<Outcome<Form>> {
  const keyList: string[] = [];
  for (const name of script.keys) {
    const key: string | readonly string[] = keys[name];
    if (Array.isArray(key)) keyList.push(...key);
    else keyList.push(key as string);
  }
  const argList: (string | number)[] = [];
  for (const name of script.args) argList.push(args[name]);
  const sent = store.run(script, keyList, argList, timeoutMs);
  return (channels.command.hasSubscribers ? published(store, lockName, script.name, sent) : sent).then(
    (reply) => decode(lockName, script, reply),
    (error: unknown) => {
      throw error instanceof StoreError ? namedAfter(lockName, error) : error;
    },
  );
}

/** Waits for the reply, publishes how long the call took, and returns the reply. */
async function published(
  store: Pick<Store, "server">,
  lockName: string,
  script: string,
  sent: Promise<Reply>,
): Promise<Reply> {
  const sentAtMs = performance.now();
  let error: unknown;
  try {
    return await sent;
  } catch (thrown) {
    error = thrown;
    throw thrown;
  } finally {
    const durationMs = performance.now() - sentAtMs;
    const event: CommandEvent = { lockName, script, durationMs, error, server: serverOf(store) };
    channels.command.publish(event);
  }
}

function decode<Form extends ReplyForm>(
  lockName: string,
  script: Script<string, string, Form>,
  reply: Reply,
): Outcome<Form> {
  const { replies } = script;
  const outcome = Array.isArray(reply) ? decodeList(replies, reply) : decodeNumber(replies, reply);
  if (outcome === undefined) {
    throw new StoreError(lockName, {
      mayHaveRun: true,
      transient: false,
      cause: isNoAnswer(reply)
        ? `${script.name} returned nothing: use a client that is not inside MULTI`
        : `${script.name} returned an unexpected reply: ${JSON.stringify(reply)}`,
    });
  }
  // The compiler cannot check property names created at run time. The checks in the decoders make this cast safe.
  return outcome as Outcome<Form>;
}

/** Whether this is the reply to a command inside MULTI: null, or QUEUED, which some clients parse as NaN. */
function isNoAnswer(reply: unknown): boolean {
  return reply === null || reply === "QUEUED" || Number.isNaN(reply);
}

/** Decodes a single number: either a code without values, or the value of the one form that has no code. */
function decodeNumber(forms: readonly ReplyForm[], reply: unknown): Record<string, unknown> | undefined {
  if (typeof reply !== "number" || !Number.isFinite(reply)) return undefined;
  let bare: ReplyForm | undefined;
  for (const form of forms) {
    if (form.code === null) bare = form;
    else if (form.code === reply) {
      if (form.values.length > 0) return undefined;
      return form.rest === null ? { outcome: form.outcome } : { outcome: form.outcome, [form.rest]: [] };
    }
  }
  const [name] = bare?.values ?? [];
  return bare === undefined || name === undefined ? undefined : { outcome: bare.outcome, [name]: reply };
}

/** Decodes a list: a code, the values of its form, and the rest if the form allows one. */
function decodeList(
  forms: readonly ReplyForm[],
  [code, ...values]: ReadonlyArray<string | number | null>,
): Record<string, unknown> | undefined {
  const form = forms.find((candidate) => candidate.code !== null && isNumber(code) && candidate.code === Number(code));
  if (form === undefined) return undefined;
  const numbers = values.slice(0, form.values.length);
  const rest = values.slice(form.values.length);
  if (numbers.length < form.values.length || !numbers.every(isNumber) || (form.rest === null && rest.length > 0)) {
    return undefined;
  }
  const outcome: Record<string, unknown> = { outcome: form.outcome };
  form.values.forEach((name, i) => {
    outcome[name] = Number(numbers[i]);
  });
  if (form.rest !== null) outcome[form.rest] = rest.map((value) => String(value ?? ""));
  return outcome;
}

/** Whether a value is a number, or a string that contains an integer, as some client libraries return. */
function isNumber(value: string | number | null | undefined): boolean {
  return typeof value === "number" ? Number.isFinite(value) : typeof value === "string" && /^-?\d+$/.test(value);
}

/**
 * If no request gets a reply for this many ms, the window stops counting the running requests and sends more, but only
 * for locks without a running request. If it kept waiting, a silent server or a silent node of a cluster would delay
 * all waiting requests by one timeout after another.
 */
const SILENCE_MS = 25;

interface Waiting {
  readonly lock: string;
  readonly send: () => void;
  readonly refuse: (error: unknown) => void;
}

/**
 * Limits how many requests can be waiting for a reply. Further requests are sent later, in the order of their arrival.
 *
 * Thousands of callers can cause cleanups in one turn of the event loop. Sending all of them at the same time would
 * block the loop, and the renewals of this process would wait behind them on the connection.
 */
export class RequestWindow {
  readonly #size: number;
  /** Number of requests without a reply, counting only those sent since the server was last found silent. */
  #unanswered = 0;
  #silences = 0;
  /** Number of running requests per lock. */
  readonly #underWay = new Map<string, number>();
  #waiting: Waiting[] = [];
  /** Timer that runs while requests are waiting. */
  readonly #silence: SharedTimer;

  /** @param size  maximum number of requests without a reply, 1 or more */
  constructor(size: number, runtime: Runtime) {
    this.#size = size;
    this.#silence = new SharedTimer(runtime, () => this.#goOn());
  }

  /**
   * Sends the request now, or as soon as enough earlier requests have been answered.
   *
   * @param lock  the lock that the request is about
   * @throws the error from the request. If an earlier request for the same lock fails with a transient StoreError while
   *         this request is still waiting, this request is not sent and fails with the same error, because thousands of
   *         timeouts in a row would take minutes
   */
  send<Reply>(lock: string, request: () => Promise<Reply>): Promise<Reply> {
    if (this.#unanswered < this.#size) return this.#send(lock, request);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lock, send: () => void this.#send(lock, request).then(resolve, reject), refuse: reject });
      this.#silence.ensure(SILENCE_MS);
    });
  }

  #send<Reply>(lock: string, request: () => Promise<Reply>): Promise<Reply> {
    const reply = request();
    const silences = this.#silences;
    this.#unanswered += 1;
    this.#underWay.set(lock, (this.#underWay.get(lock) ?? 0) + 1);
    reply.then(
      () => this.#settled(lock, silences),
      (error: unknown) => {
        if (error instanceof StoreError && error.transient) this.#refuse(lock, error);
        this.#settled(lock, silences);
      },
    );
    return reply;
  }

  /**
   * @param silences  value of `#silences` when the request was sent; if it has changed, this request no longer counts
   */
  #settled(lock: string, silences: number): void {
    const left = (this.#underWay.get(lock) ?? 0) - 1;
    if (left > 0) this.#underWay.set(lock, left);
    else this.#underWay.delete(lock);
    if (silences !== this.#silences) return;
    this.#unanswered -= 1;
    this.#waiting.shift()?.send();
    this.#await();
  }

  /** Restarts the wait for the next reply. */
  #await(): void {
    if (this.#waiting.length === 0) this.#silence.cancel();
    else this.#silence.start(SILENCE_MS);
  }

  #goOn(): void {
    const due = this.#waiting.filter(({ lock }) => !this.#underWay.has(lock)).slice(0, this.#size);
    if (due.length > 0) {
      const isDue = new Set(due);
      this.#waiting = this.#waiting.filter((one) => !isDue.has(one));
      this.#silences += 1;
      this.#unanswered = 0;
      for (const { send } of due) send();
    }
    this.#await();
  }

  #refuse(lock: string, error: StoreError): void {
    const refused = this.#waiting.filter((one) => one.lock === lock);
    this.#waiting = this.#waiting.filter((one) => one.lock !== lock);
    for (const { refuse } of refused) refuse(error);
  }
}

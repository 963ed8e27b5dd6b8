import { StoreError } from "./errors.js";
import { type CommandEvent, channels, serverOf } from "./events.js";
import type { Outcome, Reply, ReplyForm, Script } from "./script.js";
import type { Store } from "./store.js";

/** A store as one lock uses it: every failure names the lock. */
export interface Caller {
  readonly store: Pick<Store, "run" | "server">;
  /** Name of the lock. */
  readonly name: string;
}

/** The keys of a script by name; a name that ends in `...` stands for any number of them. */
export type Keys<Key extends string> = {
  readonly [Name in Key]: Name extends `${string}...` ? readonly string[] : string;
};

/**
 * Runs a script by the names in its header, and gives its answer in the words of that header.
 *
 * On the path of every acquire and release, hence plain loops, and callbacks in place of an async function.
 *
 * @throws StoreError  the answer is unknown, or is not one that the header lists
 */
export function call<Key extends string, Arg extends string, Form extends ReplyForm>(
  { store, name: lockName }: Caller,
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
  return (channels.command.hasSubscribers ? told(store, lockName, script.name, sent) : sent).then(
    (reply) => decode(lockName, script, reply),
    (error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
      const { mayHaveRun, transient, cause, resumesInMs, missingPermission } = error;
      throw new StoreError(lockName, { mayHaveRun, transient, cause, resumesInMs, missingPermission });
    },
  );
}

/** The same answer; and how long it took, for whoever listens. */
async function told(
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
        ? `${script.name} was not answered, as inside MULTI: use a client on which no transaction is open`
        : `${script.name} answered ${JSON.stringify(reply)}, which its header does not list`,
    });
  }
  // The compiler cannot follow names made at run time; the checks in the decoders are what makes the cast true.
  return outcome as Outcome<Form>;
}

/** Inside MULTI a command is answered with null, or with QUEUED, which is no number. */
function isNoAnswer(reply: unknown): boolean {
  return reply === null || reply === "QUEUED" || Number.isNaN(reply);
}

/** One number: a code that nothing follows, or else the only value of the form that has no code. */
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

/** A code, the values of its form, and whatever may follow. */
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

/** Some client libraries give integers as text. */
function isNumber(value: string | number | null | undefined): boolean {
  return typeof value === "number" ? Number.isFinite(value) : typeof value === "string" && /^-?\d+$/.test(value);
}

import { StoreError } from "./errors.js";
import type { Outcome, Reply, ReplyForm, Script } from "./script.js";
import type { Store } from "./store.js";

/** A store as one lock uses it: every failure names the lock. */
export interface Caller {
  readonly store: Store;
  readonly lockName: string;
}

/** The keys of a script by name; a name that ends in `...` stands for any number of them. */
export type Keys<Key extends string> = {
  readonly [Name in Key]: Name extends `${string}...` ? readonly string[] : string;
};

/**
 * Runs a script by the names in its header, and gives its answer in the words of that header.
 *
 * @throws StoreError  the answer is unknown, or is not one that the header lists
 */
export async function call<Key extends string, Arg extends string, Form extends ReplyForm>(
  { store, lockName }: Caller,
  script: Script<Key, Arg, Form>,
  keys: Keys<NoInfer<Key>>,
  args: Readonly<Record<NoInfer<Arg>, string | number>>,
  timeoutMs: number,
): Promise<Outcome<Form>> {
  let reply: Reply;
  try {
    reply = await store.run(
      script,
      script.keys.flatMap((key): string | readonly string[] => keys[key]),
      script.args.map((arg) => args[arg]),
      timeoutMs,
    );
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const { mayHaveRun, transient, cause } = error;
    throw new StoreError(lockName, { mayHaveRun, transient, cause });
  }
  return decode(lockName, script, reply);
}

function decode<Form extends ReplyForm>(
  lockName: string,
  script: Script<string, string, Form>,
  reply: Reply,
): Outcome<Form> {
  const listed = Array.isArray(reply) ? reply : [reply];
  // A bare number may also be a code that has no values: the codes are small, and the numbers never are.
  const coded = script.replies.find(
    (form) => form.code !== null && isNumber(listed[0]) && form.code === Number(listed[0]),
  );
  const form = coded ?? script.replies.find((candidate) => candidate.code === null && !Array.isArray(reply));
  const values = form === undefined || form.code === null ? listed : listed.slice(1);
  if (
    form === undefined ||
    values.length < form.values.length ||
    (form.rest === null && values.length > form.values.length) ||
    form.values.some((_, i) => !isNumber(values[i]))
  ) {
    throw new StoreError(lockName, {
      mayHaveRun: true,
      transient: false,
      cause: `${script.name} answered ${JSON.stringify(reply)}, which its header does not list`,
    });
  }
  const outcome: Record<string, unknown> = { outcome: form.outcome };
  form.values.forEach((name, i) => {
    outcome[name] = Number(values[i]);
  });
  if (form.rest !== null) outcome[form.rest] = values.slice(form.values.length).map((value) => String(value ?? ""));
  // The compiler cannot follow names made at run time; the checks above are what makes the cast true.
  return outcome as Outcome<Form>;
}

/** Some client libraries give integers as text. */
function isNumber(value: string | number | null | undefined): boolean {
  return typeof value === "number" ? Number.isFinite(value) : typeof value === "string" && /^-?\d+$/.test(value);
}

/** Reads the command line of the demo and reports invalid options. */
import { parseArgs } from "node:util";
import { ROUTES } from "./submissions.js";

/** The checked options of the demo. */
export interface DemoArguments {
  /** Undefined: all copies run in this process, on the embedded store. */
  readonly redisUrl: string | undefined;
  readonly copies: number;
  /** Where the load comes from. */
  readonly load: { readonly file: string | undefined } | { readonly seed: number; readonly payments: number };
}

/** The command line is invalid. The message says what was expected. */
export class ArgumentError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ArgumentError";
  }
}

/** Shown for `--help`. */
export const HELP: string = `Pays 200 payments, each submitted 1 to 5 times to several copies of an order service, without heeding
the Idempotency-Key and with it.

usage: npm run demo [-- OPTIONS]

  --redis URL          real processes on this Redis, e.g. redis://127.0.0.1:6379; if there are two or
                       more, one is killed with -9
                       (default: all copies in one process, on the embedded store)
  --copies N           copies of the service, 1 to ${ROUTES} (default 4)
  --submissions FILE   read the load from this CSV file (default examples/orders/submissions.csv)
  --seed N             make the load from this seed instead, 0 to 4294967295
  --payments N         how many payments to make from the seed, 1 to 10000 (default 200)
  --help               show this

Exit code 0: no duplicate with the key, some without. 1: anything else. 2: the command line is wrong.`;

/**
 * Reads the command line, without the names of node and the script.
 *
 * @returns "help" if that was asked for
 * @throws ArgumentError  an unknown option, or a value out of range
 */
export function readArguments(args: readonly string[]): DemoArguments | "help" {
  const values = parse(args);
  if (values.help) return "help";
  const { submissions, seed, payments } = values;
  if (submissions !== undefined && seed !== undefined) {
    throw new ArgumentError("--submissions reads the load from a file, --seed makes one: give only one of them");
  }
  if (payments !== undefined && seed === undefined) {
    throw new ArgumentError("--payments says how many to make from a seed: give --seed as well");
  }
  return {
    redisUrl: values.redis === undefined ? undefined : redisUrl(values.redis),
    copies: integer("--copies", values.copies ?? "4", 1, ROUTES),
    load:
      seed === undefined
        ? { file: submissions }
        : {
            seed: integer("--seed", seed, 0, 2 ** 32 - 1),
            payments: integer("--payments", payments ?? "200", 1, 10_000),
          },
  };
}

type Values = Partial<Record<"redis" | "copies" | "submissions" | "seed" | "payments", string>> & { help?: boolean };

function parse(args: readonly string[]): Values {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...args],
      options: {
        redis: text,
        copies: text,
        submissions: text,
        seed: text,
        payments: text,
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new ArgumentError(error instanceof Error ? error.message : String(error));
  }
}

function integer(option: string, text: string, lowest: number, highest: number): number {
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < lowest || value > highest) {
    throw new ArgumentError(
      `${option} must be a whole number from ${lowest} to ${highest}, got ${JSON.stringify(text)}`,
    );
  }
  return value;
}

function redisUrl(text: string): string {
  // The value is not repeated in the message: it may contain a password.
  if (!URL.canParse(text) || !/^rediss?:$/.test(new URL(text).protocol) || new URL(text).hostname === "") {
    throw new ArgumentError("--redis must be a URL such as redis://127.0.0.1:6379");
  }
  return text;
}

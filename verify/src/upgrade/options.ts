/** The options of a mixed-version run. */
import { parseArgs } from "node:util";
import { MISTAKES, type Mistake } from "./mistakes.js";

/** See `HELP`. */
export interface Options {
  /** The duration of each phase. */
  readonly seconds: number;
  readonly seed: number;
  readonly mistake: Mistake | undefined;
  readonly json: string | undefined;
}

export const HELP: string = `npm run verify:upgrade -- [options]

Workers of the build in verify/baseline and of this tree's build contend for the same locks on one server: each alone, one
as holder and the other as waiter in both directions, both mixed, and during an upgrade one by one.

  --seconds N       the duration of each of the six phases, 2 to 3600 (20)
  --seed N          the seed for random choices: how long locks are held, which worker is killed (1)
  --mistake NAME    the new build makes a mistake, and the run must fail: ${MISTAKES.join(", ")}
  --json FILE       also writes the sums to this file
`;

/** @throws RangeError, TypeError  invalid option */
export function optionsOf(words: readonly string[]): Options | "help" {
  const { values } = parseArgs({
    args: [...words],
    options: {
      seconds: { type: "string", default: "20" },
      seed: { type: "string", default: "1" },
      mistake: { type: "string" },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const mistake = MISTAKES.find((one) => one === values.mistake);
  if (mistake === undefined && values.mistake !== undefined) {
    throw new RangeError(`--mistake must be one of ${MISTAKES.join(", ")}; got ${values.mistake}`);
  }
  return {
    seconds: whole("--seconds", values.seconds, 2, 3_600),
    seed: whole("--seed", values.seed, 0, 2 ** 20),
    mistake,
    json: values.json,
  };
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new RangeError(`${option} must be a whole number from ${least} to ${most}; got ${text}`);
}

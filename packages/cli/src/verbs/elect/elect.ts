/** `holdfast elect`: stands for election and leads, with or without a command; or follows who leads. */
import { parseDuration } from "../../frame/durations.js";
import { usageError } from "../../frame/exit-codes.js";
import { durationOf, isGiven, nameOf, textOf, wholeOf } from "../../frame/values.js";
import type { Call, Verb } from "../../frame/verb.js";
import { checkMessage } from "../../listing/message.js";
import { notOnRedlock, onlyNative } from "../../listing/native.js";
import { listen, resign, who } from "./follow.js";
import { lead } from "./lead.js";

const HELP = `
Stands for election until it is won, leads until INT or TERM, and then resigns, so that the next candidate leads
at once. With a command: runs it while leading, with its signals, its exit code and its end before the lock ends as
in holdfast run; the command finds the term in HOLDFAST_TERM, to hand to whatever must refuse a leader of the past.

      --value V           what the leader stands for, such as its address: shown to everybody who follows
      --lease D           30s; how long a leader that died is still taken for one
      --delay D           2s; waits a random time below D before standing, so that the fastest starter of a
                          restart is not always elected
      --rejoin            stands again after a loss, instead of ending with 123
      --through-pause     stands while the election is paused (default: 75 at once)
  -m, --message TEXT      the candidate's label, shown in lists; with --resign the reason

      --who               who leads now, what for, since when, and how often that changed in the last day
      --listen            one line for each change, the present state first, until it is interrupted
      --resign            steps the leader down whose term is --token T; whoever leads next cannot be hit
      --token T           the term, as --who shows it

Exit codes: as run; 123 if it was lost. --who: 1 if nobody leads. --resign: 1 if nobody leads with that term.
--json: events candidate, elected, renewed, at-risk, lost, resigned, one line each; on stderr if there is a command.`;

/** Of a leader that is alive, and a minute for an election to settle: too short loses it to a pause of the host. */
const SHORTEST_LEASE_MS = 3_000;
const USUAL_LEASE = "30s";
const USUAL_DELAY = "2s";

/** The verb. */
export const elect: Verb = {
  name: "elect",
  usage: `holdfast elect NAME [flags] [-- command [args]]
holdfast elect NAME --who | --listen | --resign --token T`,
  help: HELP,
  options: {
    value: { type: "string" },
    lease: { type: "string" },
    delay: { type: "string" },
    rejoin: { type: "boolean" },
    "through-pause": { type: "boolean" },
    message: { type: "string", short: "m" },
    who: { type: "boolean" },
    listen: { type: "boolean" },
    resign: { type: "boolean" },
    token: { type: "string" },
  },
  takesCommand: true,
  async run(call) {
    const { values, common } = call;
    onlyNative("elect", common);
    const name = nameOf("elect", call.positionals);
    notOnRedlock(
      "elect",
      common,
      "what a leader stands for needs one place and one order, which independent servers do not have. For one process at a time: holdfast run NAME --redlock -- command",
    );
    const [mode, second] = (["who", "listen", "resign"] as const).filter((flag) => isGiven(values, flag));
    if (second !== undefined) throw usageError(`--${mode} and --${second} are two things to do: give one`);
    refuseStray(call, mode);
    const token = wholeOf(values, "token", { min: 1, max: Number.MAX_SAFE_INTEGER });
    const message = textOf(values, "message");
    const label = message === undefined ? undefined : checkMessage(message);
    switch (mode) {
      case "who":
        return await who(call, name);
      case "listen":
        return await listen(call, name);
      case "resign":
        if (token === undefined) throw usageError("--resign needs --token T: the term of the leader that you mean");
        return await resign(call, name, { token, ...(label === undefined ? {} : { reason: label }) });
      default:
        return await lead(call, {
          name,
          value: givenValue(call),
          leaseMs: parseDuration("--lease", textOf(values, "lease") ?? USUAL_LEASE, { minMs: SHORTEST_LEASE_MS }),
          delayMs: durationOf(values, "delay") ?? parseDuration("--delay", USUAL_DELAY),
          rejoins: isGiven(values, "rejoin"),
          throughPause: isGiven(values, "through-pause"),
          label,
        });
    }
  },
};

const OF_CANDIDATES = ["value", "lease", "delay", "rejoin", "through-pause"] as const;

/** A flag that would be ignored was meant for something. */
function refuseStray({ values, command }: Call, mode: string | undefined): void {
  if (mode === undefined) {
    if (textOf(values, "token") !== undefined) throw usageError("--token belongs to --resign");
    if (command?.length === 0) throw usageError("elect needs a command after --, or no --");
    return;
  }
  if (command !== undefined) throw usageError(`--${mode} runs no command: leave out what stands after --`);
  const stray = OF_CANDIDATES.find((flag) => values[flag] !== undefined);
  if (stray !== undefined) throw usageError(`--${stray} is for a candidate, and --${mode} is none`);
  if (mode !== "resign") {
    const other = (["token", "message"] as const).find((flag) => values[flag] !== undefined);
    if (other !== undefined) throw usageError(`--${other} has no meaning with --${mode}`);
  }
}

const LONGEST_VALUE_BYTES = 65_536;

function givenValue({ values }: Call): string {
  const value = textOf(values, "value") ?? "";
  const bytes = Buffer.byteLength(value);
  if (bytes > LONGEST_VALUE_BYTES)
    throw usageError(`--value must be at most ${LONGEST_VALUE_BYTES} bytes; got ${bytes}`);
  return value;
}

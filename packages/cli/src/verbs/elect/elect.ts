/** `holdfast elect`: campaigns and leads, with or without a command; or watches or removes the leader. */
import { parseDuration } from "../../frame/durations.js";
import { usageError } from "../../frame/exit-codes.js";
import { durationOf, isGiven, nameOf, textOf, wholeOf } from "../../frame/values.js";
import type { Call, Verb } from "../../frame/verb.js";
import { checkMessage } from "../../listing/message.js";
import { notOnRedlock, onlyNative } from "../../listing/native.js";
import { listen, resign, who } from "./follow.js";
import { lead } from "./lead.js";

const HELP = `
Campaigns until it is elected, leads until INT or TERM, and then resigns, so
that the next candidate leads immediately. With a command, it runs the
command while it leads, as holdfast run does: signals, exit code, and the end
before the lease ends. The command finds its term in HOLDFAST_TERM. Let the
resource refuse a lower term than one it has seen.

      --value V           published with the leader, such as its address
      --lease D           30s; how long a crashed leader still counts as one
      --delay D           2s; first sleep a random time below D, so that the
                          same host does not win after every restart
      --rejoin            campaign again after a loss; do not exit with 123
      --through-pause     campaign while the election is paused (default:
                          exit 75)
  -m, --message TEXT      the label, shown in lists; with --resign the reason

      --who               print the leader, its value and term, how long it
                          has led, and the number of changes in the last day
      --listen            print the current state and then each change, until
                          interrupted
      --resign            remove the leader whose term is --token T, and no
                          later leader
      --token T           the term, as --who shows it

Exit codes: as run; 123 if the lead was lost. --who: 1 if there is no leader.
--resign: 1 if no leader has that term.
--json: events candidate, elected, renewed, at-risk, lost, resigned, one line
each; on stderr if there is a command.`;

/** The shortest lease of a leader. A shorter one would be lost to a brief pause of the host. */
const SHORTEST_LEASE_MS = 3_000;
const USUAL_LEASE = "30s";
const USUAL_DELAY = "2s";

/** The verb `elect`. */
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
      "an election needs one server and one order of requests, which independent servers do not have. For one process at a time: holdfast run NAME --redlock -- command",
    );
    const [mode, second] = (["who", "listen", "resign"] as const).filter((flag) => isGiven(values, flag));
    if (second !== undefined) throw usageError(`--${mode} and --${second} cannot be combined`);
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
        if (token === undefined) throw usageError("--resign needs --token T: the term of the leader to remove");
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

/** Refuses flags that the chosen mode would ignore, because the user expects them to have an effect. */
function refuseStray({ values, command }: Call, mode: string | undefined): void {
  if (mode === undefined) {
    if (textOf(values, "token") !== undefined) throw usageError("--token works only with --resign");
    if (command?.length === 0) throw usageError("elect needs a command after --, or no --");
    return;
  }
  if (command !== undefined) throw usageError(`--${mode} takes no command: remove -- and everything after it`);
  const stray = OF_CANDIDATES.find((flag) => values[flag] !== undefined);
  if (stray !== undefined) throw usageError(`--${stray} is only for candidates, and --${mode} does not campaign`);
  if (mode !== "resign") {
    const other = (["token", "message"] as const).find((flag) => values[flag] !== undefined);
    if (other !== undefined) throw usageError(`--${other} cannot be combined with --${mode}`);
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

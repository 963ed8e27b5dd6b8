/**
 * Finds the missing ACL SETUSER rule from the text of a server's error.
 *
 * The server names a refused command, but not a command that it refuses inside a script. Then it gives only the line number in
 * the script, and the name of the command is read from that line.
 */
import { messageOf } from "./failure.js";

/** The request that the server refused. */
export interface Refused {
  /** Text of the script, if the request was a script. */
  readonly source?: string | undefined;
  readonly keys?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
}

/** The error texts of Redis 6, of Redis 7 and later, and of GLIDE. */
const COMMAND = /no permissions to run the '([^']+)' command/i;
const COMMAND_IN_SCRIPT = /script can't run this command/i;
const KEY = /no permissions to access (?:one of the keys|a key|the '.*' key)|can't access at least one of the keys/i;
const CHANNEL =
  /no permissions to access (?:one of the channels|a channel|the '.*' channel)|can't publish to the channel/i;
/** The line number in an error that was raised inside a script. */
const LINE = /user_script: ?(\d+)/;
/** A command, and the word after it, which may be a subcommand. */
const CALL = /redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g;
/** The most lines that one call spans. */
const LINES_OF_A_CALL = 8;

/**
 * The rule that would have permitted the request, such as `+zadd`, `~hf:mutex:{a}` or `&hf:in:*`. Several rules if the error
 * does not say which one; undefined if the server refused for another reason.
 */
export function missingPermission(cause: unknown, { source, keys = [], channels = [] }: Refused): string | undefined {
  const message = messageOf(cause);
  const [, command] = COMMAND.exec(message) ?? [];
  if (command !== undefined) return `+${command.toLowerCase()}`;
  if (KEY.test(message)) return keys.map((key) => `~${key}`).join(" ") || "~ for its keys";
  if (CHANNEL.test(message)) return channels.map((channel) => `&${channel}`).join(" ") || "& for its channels";
  if (!COMMAND_IN_SCRIPT.test(message)) return undefined;
  return commandsAt(source ?? "", Number(LINE.exec(message)?.[1] ?? 0)) || "+ for its commands";
}

/** The error of a server on which no user may call a command from a script, or on which the command was renamed. */
const FORBIDDEN = /not allowed from script|unknown (?:Redis |Valkey )?command called from script/i;

/** The command that the server forbids in scripts, such as `TIME`; undefined if the server refused for another reason. */
export function forbiddenCommand(cause: unknown, source: string): string | undefined {
  const message = messageOf(cause);
  if (!FORBIDDEN.test(message)) return undefined;
  const commands = commandsAt(source, Number(LINE.exec(message)?.[1] ?? 0));
  return commands.replaceAll("+", "").replaceAll("|", " ").toUpperCase() || "Redis commands";
}

/** The rules for the commands called on this line of a script, or in the call that ends on it. */
function commandsAt(source: string, line: number): string {
  const lines = source.split("\n");
  for (let at = line; at > Math.max(0, line - LINES_OF_A_CALL); at -= 1) {
    const calls = [...(lines[at - 1] ?? "").matchAll(CALL)];
    // Only PUBSUB has subcommands here; an uppercase word after any other command is an option.
    const rules = calls.map(([, name = "", sub]) => (name === "PUBSUB" && sub ? `+pubsub|${sub}` : `+${name}`));
    if (rules.length > 0) return [...new Set(rules)].join(" ").toLowerCase();
  }
  return "";
}

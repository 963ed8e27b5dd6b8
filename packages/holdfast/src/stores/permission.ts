/**
 * Which rule of ACL SETUSER is missing, found from the words in which a server refuses.
 *
 * A server names the command that it refuses, but not the one that it refuses to a script: of that it says in which line
 * it stands, and there the name is.
 */
import { messageOf } from "./failure.js";

/** What the server refused. */
export interface Refused {
  /** Text of the script, if it was one. */
  readonly source?: string | undefined;
  readonly keys?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
}

/** In the words of Redis 6, 7 and later, and of GLIDE. */
const COMMAND = /no permissions to run the '([^']+)' command/i;
const COMMAND_IN_SCRIPT = /script can't run this command/i;
const KEY = /no permissions to access (?:one of the keys|a key|the '.*' key)|can't access at least one of the keys/i;
const CHANNEL =
  /no permissions to access (?:one of the channels|a channel|the '.*' channel)|can't publish to the channel/i;
/** Of an error that was raised while a script ran. */
const LINE = /user_script: ?(\d+)/;
/** A command, and the word after it where that is a subcommand. */
const CALL = /redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g;
/** How many lines one call takes at most. */
const LINES_OF_A_CALL = 8;

/**
 * The rule that would have let it pass, such as `+zadd`, `~hf:mutex:{a}` or `&hf:in:*`; several, where the server leaves open
 * which; undefined if it is not for want of a permission that it refused.
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

/** As a server says it that lets no script call a command, whoever the user is, or that has renamed it. */
const FORBIDDEN = /not allowed from script|unknown (?:Redis |Valkey )?command called from script/i;

/** The command that a server lets no script call, such as `TIME`; undefined if it has refused for another reason. */
export function forbiddenCommand(cause: unknown, source: string): string | undefined {
  const message = messageOf(cause);
  if (!FORBIDDEN.test(message)) return undefined;
  const commands = commandsAt(source, Number(LINE.exec(message)?.[1] ?? 0));
  return commands.replaceAll("+", "").replaceAll("|", " ").toUpperCase() || "all its commands";
}

/** What is called in that line of a script, or in the call that ends there. */
function commandsAt(source: string, line: number): string {
  const lines = source.split("\n");
  for (let at = line; at > Math.max(0, line - LINES_OF_A_CALL); at -= 1) {
    const calls = [...(lines[at - 1] ?? "").matchAll(CALL)];
    // Only PUBSUB has subcommands here; a word in capitals after another command is an option.
    const rules = calls.map(([, name = "", sub]) => (name === "PUBSUB" && sub ? `+pubsub|${sub}` : `+${name}`));
    if (rules.length > 0) return [...new Set(rules)].join(" ").toLowerCase();
  }
  return "";
}

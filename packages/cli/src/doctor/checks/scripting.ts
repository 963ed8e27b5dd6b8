/** Checks the server version, whether the server accepts the library's scripts, and whether their messages arrive. */
import { type Check, found, ok, skipped, unknown } from "../check.js";
import { counted, few, millis } from "../words.js";

/**
 * Major and minor version as one comparable number: 7000 for `7.0.15`. Undefined if the text does not start with a
 * number.
 */
function ordinal(version: string): number | undefined {
  const [, major, minor = "0"] = /^(\d+)(?:\.(\d+))?/.exec(version) ?? [];
  return major === undefined ? undefined : Number(major) * 1_000 + Number(minor);
}

/** Reports old servers that lack features that locks depend on. */
export const version: Check = {
  id: "version",
  reads: "`redis_version` or `valkey_version`",
  levels: "critical below 6.2; info below 7.2",
  risk: "Before 6.2, the server lacks commands that the scripts call.",
  fix: "upgrade to Redis 7.2 or later, or to Valkey",
  families: [],
  run({ info }) {
    const valkey = info.get("valkey_version");
    const text = valkey ?? info.get("redis_version");
    const number = text === undefined ? undefined : ordinal(text);
    if (text === undefined || number === undefined) {
      return unknown(
        "the server does not show its version",
        "grant INFO to this user, or look where the service is configured: 6.2 or later",
      );
    }
    const measured = `${valkey === undefined ? "Redis" : "Valkey"} ${text}`;
    if (number < 6_002) return found("critical", measured);
    if (number < 7_000) {
      return found("info", measured, {
        risk: "Before 7.0, there are no sharded channels: in a cluster, a lock may be granted to a waiter that is gone. Scripts are replicated as they are.",
      });
    }
    if (number < 7_002) {
      return found("info", measured, {
        risk: "Before 7.2, the server's time advances while a script runs, and there is no WAITAOF. Neither affects locks.",
      });
    }
    return ok(measured);
  },
};

/** Locks work without these commands, although slower or with less protection. */
const NOT_NEEDED = /^(?:S?PUBLISH|PUBSUB|INFO|CLUSTER|XADD|XREVRANGE)\b/;

/** Whether the scripts can be loaded and called. Locks do not work without them. */
export const scripts: Check = {
  id: "scripts",
  reads:
    "whether SCRIPT LOAD accepts every library script, EVALSHA works with and without a key, and scripts may call each command they use",
  levels:
    "critical if a script or a required command is refused; warning if only scripts without keys or optional commands, such as PUBLISH and INFO, are refused",
  risk: "No lock can be acquired, because the server refuses scripts or has disabled or renamed a command.",
  fix: "grant SCRIPT LOAD and EVALSHA, or use an endpoint that allows scripts (docs/hosting.md)",
  families: ["scripts", "permissions"],
  run({ scripts: facts, permissions, hidden }) {
    if (facts === undefined) {
      return unknown(
        `scripts could not be tested (${hidden.get("scripts") ?? "no reply"})`,
        "try it by hand: redis-cli SCRIPT LOAD 'return 1'",
      );
    }
    const { loaded, refused, notCalled, notCalledWithoutKeys } = facts;
    if (refused.length > 0) {
      return found(
        "critical",
        `${refused.length} of ${loaded + refused.length} scripts are refused: ${few(refused, 2)}`,
      );
    }
    if (notCalled !== undefined) return found("critical", `scripts load but cannot be called: ${notCalled}`);
    const forbidden = permissions?.forbidden ?? [];
    const needed = forbidden.filter((command) => !NOT_NEEDED.test(command));
    if (needed.length > 0) return found("critical", `this server does not let scripts call ${few(needed, 12)}`);
    if (forbidden.length > 0) {
      return found("warning", `this server does not let scripts call ${few(forbidden, 12)}`, {
        risk: "Without PUBLISH or PUBSUB, waiters poll. Without INFO and CLUSTER, Holdfast detects neither eviction nor failovers. Without XADD, there is no history.",
      });
    }
    if (notCalledWithoutKeys !== undefined) {
      return found("warning", `a script without keys is refused: ${notCalledWithoutKeys}`, {
        risk: "Holdfast cannot see whether the server evicts keys, and `holdfast ls` lists nothing.",
      });
    }
    return ok(`all ${loaded} scripts load, and one was called`);
  },
};

/** Whether messages that notify waiters of a grant arrive. */
export const pubsub: Check = {
  id: "pubsub",
  reads:
    "how many receivers the server counts for a message that a script publishes to the doctor's own inbox, and when it arrives",
  levels:
    "critical if the message arrives, but the server counts 0 receivers; warning if it does not arrive, takes over 100 ms, or has more than 1 receiver",
  risk: "A release skips waiters whose message has 0 receivers, so a wrong count makes it skip live waiters. A grant that does not arrive blocks the lock for one lease.",
  fix: "look for a proxy that interferes. Check the permissions for channels, client-output-buffer-limit pubsub and, in a cluster, the sharded inbox (Redis 7)",
  families: ["inbox"],
  run({ role, inbox, hidden }) {
    if (role === "slave") return skipped("a replica");
    if (inbox === undefined) {
      return unknown(`the inbox could not be tested (${hidden.get("inbox") ?? "no reply"})`, "see acl");
    }
    const { isSharded, receivers, arrivedMs, failure } = inbox;
    const sort = isSharded ? "sharded" : "plain";
    if (failure !== undefined) {
      return found("warning", `no message could be sent to an inbox: ${failure}`, {
        risk: "Waiters are not notified of grants and releases: they poll, and are served late and out of turn.",
        fix: "grant access to the channels (see acl); otherwise look for a proxy between client and server",
      });
    }
    if (arrivedMs === undefined) {
      return found(
        "warning",
        `a message to a ${sort} inbox did not arrive; ${counted(receivers ?? 0, "receiver")} counted`,
        {
          risk: "A grant without a receiver blocks the lock for one lease, because its holder does not know of it.",
        },
      );
    }
    const measured = `a message to a ${sort} inbox arrived after ${millis(arrivedMs)}; ${counted(receivers ?? 0, "receiver")} counted`;
    if (receivers === 0) return found("critical", measured);
    if (receivers !== 1) {
      return found("warning", measured, {
        risk: "Another client subscribes to inboxes by their names. A crashed waiter then looks alive, and gets a lease that it does not use.",
        fix: "do not SUBSCRIBE to <prefix>:in:…; to watch, use PSUBSCRIBE",
      });
    }
    return arrivedMs > 100 ? found("warning", measured) : ok(measured);
  },
};

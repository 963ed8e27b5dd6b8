/** Checks who can access the locks, and whether this user can. */
import { leastPrivilege } from "holdfast/diagnosis";
import { type Check, found, ok, unknown } from "../check.js";
import type { NodeFacts } from "../facts.js";
import { few } from "../words.js";

/** Whether the server accepts connections from other machines; undefined if the server does not show it. */
function isOpenToNetwork({ config, isLocal }: NodeFacts): boolean | undefined {
  const bind = config.get("bind");
  if (bind === undefined) return isLocal ? undefined : true;
  const addresses = bind.split(" ").filter((one) => one !== "");
  // A leading dash means that the address may be missing on this host. An empty list means all addresses.
  return addresses.length === 0 || addresses.some((one) => !/^-?(127\.|::1$|localhost$)/.test(one));
}

/** Whether a client without credentials can access the server. */
export const exposure: Check = {
  id: "exposure",
  reads: "`protected-mode`, `bind`, `requirepass`, and whether a client can connect without a password",
  levels: "critical if other hosts can connect without a password; info if protected mode rejects other hosts",
  risk: "Every client that reaches the server can delete or take locks, and read or change all other data.",
  fix: "set a password or ACL users, bind only to the addresses needed, and use TLS. Setting `protected-mode no` is not a fix",
  families: ["anonymous"],
  run(facts) {
    const { anonymous, config } = facts;
    if (anonymous === "refused") return ok("no access without a password");
    if (anonymous === "uncertified") return ok("no access without a certificate");
    if (anonymous === "restricted") return ok("no access to keys without a password");
    if (anonymous === "denied") {
      return found("info", "protected mode refuses this host", {
        risk: "Clients on other hosts are refused (DENIED).",
        fix: "set a password; protected mode then has no effect",
      });
    }
    if (anonymous === undefined) {
      return unknown(
        `access without a password could not be tested (${facts.hidden.get("anonymous") ?? "no reply"})`,
        "try it by hand: redis-cli -h HOST PING",
      );
    }
    const isOpen = isOpenToNetwork(facts);
    const bind = `bind ${config.get("bind") || "to all addresses"}`;
    if (isOpen === false) return ok(`no password, but it listens only on this machine (${bind})`);
    if (isOpen === undefined) {
      return unknown(
        "no password, and bind is not shown: it may listen on a network",
        "grant CONFIG GET to this user, or look at its bind and protected-mode",
      );
    }
    if (config.get("protected-mode") === "yes") {
      return found("info", `no password, ${bind}, protected-mode yes`, {
        risk: "Clients on other hosts are refused (DENIED), and only protected mode keeps strangers out.",
        fix: "set a password or ACL users; protected mode then has no effect",
      });
    }
    const how = config.has("bind")
      ? `${bind}, protected-mode ${config.get("protected-mode") ?? "not shown"}`
      : "reached over the network";
    return found("critical", `no password, ${how}`);
  },
};

/**
 * Rules whose absence only makes locks slower. If any other rule is missing, except those in `FOR_INSPECTION`, scripts
 * fail and no lock can be acquired.
 */
const WITHOUT_IT_SLOWER =
  /^(&|\+(subscribe|unsubscribe|ssubscribe|sunsubscribe|publish|spublish|pubsub\|\w+|info|cluster\|myid)$)/;
/** Rules that are needed only to inspect locks. */
const FOR_INSPECTION = /^\+(eval|scan|xadd|xrevrange)$/;

/** Whether this user has the permissions that locks need. */
export const acl: Check = {
  id: "acl",
  reads: "whether your user may run the commands that locks, tools and the history need",
  levels:
    "critical if scripts or their commands are refused; warning if channels or INFO are refused; info if only other commands are refused",
  risk: "The first acquire fails with NOPERM.",
  fix: "run the ACL SETUSER command that the finding shows",
  families: ["permissions"],
  run({ permissions, user = "default", topology, hidden, info }, { prefix }) {
    if (permissions === undefined) {
      return unknown(
        `permissions could not be tested (${hidden.get("permissions") ?? "no reply"})`,
        "check with ACL WHOAMI and ACL GETUSER",
      );
    }
    const { missing, untried } = permissions;
    const severe = missing.filter((rule) => !WITHOUT_IT_SLOWER.test(rule) && !FOR_INSPECTION.test(rule));
    const slower = missing.filter((rule) => WITHOUT_IT_SLOWER.test(rule));
    const inspecting = missing.filter((rule) => FOR_INSPECTION.test(rule));
    const fix = setUser(user, prefix, topology === "cluster", info);
    const refused = (rules: readonly string[]): string => `user ${user} lacks ${few(rules, 12)}`;
    const verdicts = [
      ...(severe.length > 0 ? found("critical", refused(severe), { fix }) : []),
      ...(slower.length > 0
        ? found("warning", refused(slower), {
            risk: "Without channels, waiters poll instead of receiving grants. Without INFO, Holdfast sees neither eviction nor failovers.",
            fix,
          })
        : []),
      ...(inspecting.length > 0
        ? found("info", refused(inspecting), {
            risk: "Locks work without it. Lists need SCAN (ls, console, leftovers), the history needs XADD and XREVRANGE, and only other libraries need EVAL.",
            fix: inspectionFix(user, inspecting),
          })
        : []),
      ...(untried.size > 0
        ? unknown(`could not be tested: ${few([...untried].map(([rule, why]) => `${rule} (${why})`))}`, fix)
        : []),
    ];
    return verdicts.length > 0 ? verdicts : ok(`user ${user} has all permissions that locks need`);
  },
};

function inspectionFix(user: string, missing: readonly string[]): string {
  const needed = missing.filter((rule) => rule !== "+eval");
  if (needed.length === 0) return "nothing to do, unless another library needs EVAL";
  return `nothing to do for locks; for lists and the history: ACL SETUSER ${user} ${needed.join(" ")}`;
}

/** Rules for the commands of sharded channels, which Redis 6.2 does not have. */
const SHARDED = /^\+s(un)?subscribe$|^\+spublish$/;

/**
 * The commands that client libraries send when they connect, limited to the rules that the server accepts. Redis 7.0
 * does not know CLIENT SETINFO and rejects a rule for it. Redis 6.2 accepts any word as a subcommand in a rule, but
 * refuses the subcommands that it does not know.
 */
function ofConnections([major = 7, minor = 0]: readonly number[]): readonly string[] {
  if (major < 7) return ["+client|setinfo", "+client|maint_notifications"];
  return major > 7 || minor >= 2 ? ["+client|setinfo"] : [];
}

/**
 * The command that gives a user every permission it needs below the prefix on this server, and removes none. Valkey
 * reports 7.2 as the version of Redis that it is compatible with.
 */
export function setUser(user: string, prefix: string, isCluster: boolean, info: NodeFacts["info"]): string {
  const { server, cluster, clusterClients } = leastPrivilege(prefix);
  const version = (info.get("redis_version") ?? "7").split(".").map(Number);
  const isSharded = (version[0] ?? 7) >= 7;
  const besides = [...cluster, ...clusterClients].filter((rule) => isSharded || !SHARDED.test(rule));
  return ["ACL SETUSER", user, ...server, ...(isCluster ? besides : []), ...ofConnections(version)].join(" ");
}

/** Checks what a server does when its memory is full, and how close it is to that. */
import { type Check, found, ok, unknown } from "../check.js";
import { numberIn } from "../facts.js";
import { bytes, counted } from "../words.js";

/** Reports eviction policies under which a server may evict a lock and grant it again. */
export const eviction: Check = {
  id: "eviction",
  reads: "`maxmemory-policy`, `maxmemory` and `evicted_keys`",
  levels: "if the policy is not `noeviction`, critical with `maxmemory` and info without it",
  risk: "The server may evict a held lock and grant it to another client. Lock keys have an expiry, so every `volatile-*` and `allkeys-*` policy may evict them.",
  fix: "run CONFIG SET maxmemory-policy noeviction and change the configuration file, or use a separate Redis for locks",
  families: [],
  run({ info, config }) {
    const policy = info.get("maxmemory_policy") ?? config.get("maxmemory-policy");
    const limit = numberIn(info, "maxmemory") ?? numberIn(config, "maxmemory");
    if (policy === undefined || limit === undefined) {
      return unknown(
        "the server shows its maxmemory-policy neither in INFO memory nor by CONFIG GET",
        "grant INFO to this user, or look it up where the service is configured: it must be noeviction",
      );
    }
    const evicted = numberIn(info, "evicted_keys") ?? 0;
    const settings = `maxmemory-policy ${policy}, ${limit === 0 ? "no maxmemory" : `maxmemory ${bytes(limit)}`}`;
    const measured = evicted === 0 ? settings : `${settings}, ${counted(evicted, "key")} evicted since it was started`;
    if (policy === "noeviction") return ok(measured);
    if (limit > 0) return found("critical", measured);
    return found("info", measured, { risk: "If maxmemory is set later, held locks may be evicted." });
  },
};

/** Reports memory that is nearly full, because a full server grants nothing. */
export const memory: Check = {
  id: "memory",
  reads: "`used_memory` and `maxmemory`",
  levels: "warning above 80% of `maxmemory`; critical above 95%",
  risk: "When memory is full, every acquire fails with OOM. Held leases can still be renewed and released.",
  fix: "raise maxmemory, or move other data to another Redis",
  families: [],
  run({ info, config }) {
    const used = numberIn(info, "used_memory");
    const limit = numberIn(info, "maxmemory") ?? numberIn(config, "maxmemory");
    if (limit === 0) return ok(`no maxmemory${used === undefined ? "" : `, ${bytes(used)} used`}`);
    if (used === undefined || limit === undefined) {
      return unknown(
        "the server does not show INFO memory",
        "grant INFO to this user, or look at the service's own charts",
      );
    }
    const share = (100 * used) / limit;
    const measured = `${bytes(used)} of ${bytes(limit)} used, ${Math.round(share)}%`;
    if (share > 95) return found("critical", measured);
    return share > 80 ? found("warning", measured) : ok(measured);
  },
};

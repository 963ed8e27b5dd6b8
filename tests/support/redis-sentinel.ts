/** A master, its replicas and their sentinels, as the failover runs start them too. */
export * from "../../verify/src/servers/redis-sentinel.js";

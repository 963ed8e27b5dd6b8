/** Starts a master with replicas and sentinels for a test. The failover runs use the same code. */
export * from "../../verify/src/servers/redis-sentinel.js";

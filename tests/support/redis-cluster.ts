/** Starts a Redis Cluster for a test. The failover runs use the same code. */
export * from "../../verify/src/servers/redis-cluster.js";

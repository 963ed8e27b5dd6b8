/** A Redis Cluster of one's own, as the failover runs start it too. */
export * from "../../verify/src/servers/redis-cluster.js";

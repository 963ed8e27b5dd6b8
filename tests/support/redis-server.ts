/** A Redis server of one's own, as the failover runs start it too. */
export * from "../../verify/src/servers/redis-server.js";

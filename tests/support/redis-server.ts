/** Starts a Redis server for a test. The failover runs use the same code. */
export * from "../../verify/src/servers/redis-server.js";

/** Every verb of the checklist, between Holdfast and a model of Java in both directions, and within Holdfast. */
import { afterAll, beforeAll } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { JAVA_MODEL } from "./java-model.js";
import { NODE } from "./node-side.js";
import { checkVerbs } from "./verbs.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());
const port = (): number => server.port;

checkVerbs(NODE, JAVA_MODEL, port);
checkVerbs(JAVA_MODEL, NODE, port);
checkVerbs(NODE, NODE, port, { types: ["lock", "fair"] });

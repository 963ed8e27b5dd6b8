/** A relay as a process, for a network namespace: `relay.js FROM_PORT TO_HOST TO_PORT`. Reports when it listens. */
import { startRelay } from "../topology/relay.js";

const [fromPort = "", host = "", toPort = ""] = process.argv.slice(2);
await startRelay({ host: "127.0.0.1", port: Number(fromPort) }, { host, port: Number(toPort) });
process.send?.("listening");
// The process that started this one is gone.
process.on("disconnect", () => process.exit(1));

import { contractsOn } from "./contracts.js";

contractsOn("node-redis 6 over TLS");

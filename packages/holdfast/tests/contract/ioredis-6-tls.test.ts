import { contractsOn } from "./contracts.js";

contractsOn("ioredis 6 over TLS");

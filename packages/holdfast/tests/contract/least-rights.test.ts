import { contractsOn } from "./contracts.js";

contractsOn("ioredis 6 with minimal permissions");

import { contractsOn } from "./contracts.js";

contractsOn("ioredis 6 on a cluster with minimal permissions");

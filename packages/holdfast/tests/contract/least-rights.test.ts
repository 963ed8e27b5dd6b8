import { contractsOn } from "./contracts.js";

contractsOn("ioredis 6 with the least rights");

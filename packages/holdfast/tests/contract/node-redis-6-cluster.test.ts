import { contractsOn } from "./contracts.js";

contractsOn("node-redis 6 on a cluster");

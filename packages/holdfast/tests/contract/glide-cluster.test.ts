import { contractsOn } from "./contracts.js";

contractsOn("GLIDE on a cluster");

import { contractsOn } from "./contracts.js";

contractsOn("GLIDE");

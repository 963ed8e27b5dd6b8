import { contractsOn } from "./contracts.js";

contractsOn("iovalkey");

import { contractsOn } from "./contracts.js";

contractsOn("embedded");

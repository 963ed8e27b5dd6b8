import { ROWS } from "./rows.js";
import { describeStoreContract } from "./store.contract.js";

for (const row of ROWS) describeStoreContract(row);

import { fileDatabase } from "../sqlite/databases.ts";
import { metricsContract } from "./contract.ts";
import { historyContract } from "./history.ts";

metricsContract("SQLite", fileDatabase);
historyContract("SQLite", fileDatabase);

import { fileDatabase } from "../sqlite/databases.ts";
import { metricsContract } from "./contract.ts";

metricsContract("SQLite", fileDatabase);

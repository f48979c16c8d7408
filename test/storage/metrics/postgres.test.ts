import { postgresDatabase } from "../postgres/databases.ts";
import { metricsContract } from "./contract.ts";
import { historyContract } from "./history.ts";

metricsContract("Postgres", postgresDatabase);
historyContract("Postgres", postgresDatabase);

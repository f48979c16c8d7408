import { postgresDatabase } from "../postgres/databases.ts";
import { metricsContract } from "./contract.ts";

metricsContract("Postgres", postgresDatabase);

import { postgresDatabase } from "../postgres/databases.ts";
import { accountsContract } from "./contract.ts";

accountsContract("Postgres", postgresDatabase);

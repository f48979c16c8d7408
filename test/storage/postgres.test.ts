import { storageContract } from "./contract.ts";
import { postgresDatabase } from "./postgres/databases.ts";

storageContract("Postgres", postgresDatabase);

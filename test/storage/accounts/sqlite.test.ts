import { fileDatabase, memoryDatabase } from "../sqlite/databases.ts";
import { accountsContract } from "./contract.ts";

accountsContract("SQLite in memory", memoryDatabase);
accountsContract("SQLite on file", fileDatabase);

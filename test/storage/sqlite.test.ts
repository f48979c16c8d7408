import { storageContract } from "./contract.ts";
import { fileDatabase, memoryDatabase } from "./sqlite/databases.ts";

storageContract("SQLite in memory", memoryDatabase);
storageContract("SQLite on file", fileDatabase);

import { fileDatabase, memoryDatabase } from "../sqlite/databases.ts";
import { hostingContract } from "./contract.ts";

hostingContract("SQLite in memory", memoryDatabase);
hostingContract("SQLite on file", fileDatabase);

import { storageContract } from "../contract.ts";
import { databasesWithTasksIn } from "./databases.ts";

// Each sequence opens three databases, which takes most of its time.
storageContract("Postgres in cells", databasesWithTasksIn(2), { sequences: 8 });

import { storageContract } from "../contract.ts";
import { databasesWithTasksIn } from "./databases.ts";

storageContract("Postgres in cells", databasesWithTasksIn(2));

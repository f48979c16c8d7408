import { storageContract } from "./contract.ts";
import { postgresDatabase } from "./postgres/databases.ts";
import { nextVersion } from "./postgres/next-version.ts";

if (process.env.TESSERA_NEXT_SCHEMA === undefined) {
  storageContract("Postgres", postgresDatabase);
} else {
  storageContract("Postgres with the schema of the next version", nextVersion);
}

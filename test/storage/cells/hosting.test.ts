import { hostingContract } from "../hosting/contract.ts";
import { databasesWithTasksIn } from "./databases.ts";

hostingContract(
  "Postgres in cells",
  databasesWithTasksIn(() => 2),
  {
    skip: [
      {
        reason:
          "a message is taken home with its task, which is not needed in its cell from then on",
        tests: ["keep a task until the message of its end is made, or nobody waits for it"],
      },
    ],
  },
);

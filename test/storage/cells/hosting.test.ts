import { HOME_CELL } from "../../../src/tasks/id.ts";
import { FIRED } from "../hosting/contract/schedules.ts";
import { hostingContract } from "../hosting/contract.ts";
import { databasesWithTasksIn } from "./databases.ts";

hostingContract(
  "Postgres in cells",
  // A schedule fires at home.
  databasesWithTasksIn((taskId) => (taskId.startsWith(FIRED) ? HOME_CELL : 2)),
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

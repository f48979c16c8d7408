import { storageContract } from "../contract.ts";
import { databasesWithTasksIn } from "./databases.ts";

// Each sequence opens three databases, which takes most of its time.
storageContract(
  "Postgres in cells",
  databasesWithTasksIn(() => 2),
  { sequences: 8 },
);

// What is asked of tasks by their ids, with neighbours in other databases. In which order tasks of several
// cells are claimed and listed is not promised.
storageContract(
  "Postgres with tasks at home and in two cells",
  databasesWithTasksIn((taskId) => (taskId.codePointAt(taskId.length - 1) ?? 0) % 3),
  {
    parts: [
      "returned attempts",
      "end",
      "fencing",
      "attempts and aborts",
      "payloads",
      "events",
      "pieces of streamed results",
      "update",
      "delete",
      "trace",
    ],
    skip: [
      {
        reason: "its tasks are in three databases, and each has an order of its own",
        tests: [
          "returns a lost attempt to the place that it had",
          "claims a task by the priority that it was given since",
          "keeps the trace of a task, and none for one without",
          "forgets as many as it may at once, what expired first, and says that there are more",
        ],
      },
      {
        reason: "only a task and its retries have files in common, and these are in one cell",
        tests: ["has blobs die that no other task refers to"],
      },
    ],
  },
);

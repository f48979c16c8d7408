import { expect, it } from "vitest";
import { csvOf } from "../../src/console/app/api/audit-csv.ts";

it("events are written as CSV, and none as a formula", () => {
  const text = csvOf([
    {
      ...{ time: "2026-11-23T10:00:00Z", action: "token.create", actor: "ada@example.com" },
      ...{ address: "203.0.113.9", subject: '=HYPERLINK("evil")', subjectId: "t1" },
      details: { name: "a, b" },
    },
  ]);
  expect(text.split("\r\n")).toEqual([
    "time,action,actor,address,subject,subject_id,details",
    `"2026-11-23T10:00:00Z","token.create","ada@example.com","203.0.113.9","'=HYPERLINK(""evil"")","t1","{""name"":""a, b""}"`,
    "",
  ]);
});

it.each(["=1", "+1", "-1", "@x", "\tx", "\rx"])("%j is no formula", (subject) => {
  expect(csvOf([{ subject }])).toContain(`"'${subject}"`);
});

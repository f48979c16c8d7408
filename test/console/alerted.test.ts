import { expect, it } from "vitest";
import { withAlerts } from "../../src/console/app/pages/overview/alerted.ts";

const SEEN = [
  { key: "tasks ocr", isBad: true, cause: "read: no text" },
  { key: "webhook ocr/app", isBad: false, cause: "no such host" },
  { key: "webhook tape/app", isBad: false, cause: "no such host" },
];

it("says of what is seen that an alert fires for it, and gives the alert no second row", () => {
  const elsewhere = { rule: "disks", kind: "ALERT_KIND_DISK_FREE", subject: "node a" } as const;
  const { fired, left } = withAlerts(SEEN, [
    { rule: "failing", kind: "ALERT_KIND_FAILURES", subject: "deployment ocr" },
    { rule: "hooks", kind: "ALERT_KIND_WEBHOOK_OFF", subject: "webhook app of ocr" },
    elsewhere,
    // Nothing failed of it in the last hour.
    { rule: "failing", kind: "ALERT_KIND_FAILURES", subject: "deployment tape" },
  ]);
  expect(fired).toEqual([
    { key: "tasks ocr", isBad: true, cause: "read: no text (alert failing)" },
    { key: "webhook ocr/app", isBad: true, cause: "no such host (alert hooks)" },
    SEEN[2],
  ]);
  expect(left).toEqual([
    elsewhere,
    { rule: "failing", kind: "ALERT_KIND_FAILURES", subject: "deployment tape" },
  ]);
});

it("names each of several alerts that fire for the same", () => {
  const firing = ["failing", "failing-much"].map((rule) => {
    return { rule, kind: "ALERT_KIND_FAILURES", subject: "deployment ocr" } as const;
  });
  const { fired, left } = withAlerts(SEEN, firing);
  expect(fired[0]?.cause).toBe("read: no text (alerts failing, failing-much)");
  expect(left).toEqual([]);
});

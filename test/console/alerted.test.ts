import { expect, it } from "vitest";
import { withAlerts } from "../../src/console/app/pages/overview/alerted.ts";

const SEEN = [
  { keys: ["tasks ocr"], isBad: true, cause: "read: no text" },
  { keys: ["webhook ocr/app"], isBad: false, cause: "no such host" },
  { keys: ["webhook tape/app"], isBad: false, cause: "no such host" },
];

it("says of what is seen that an alert fires for it, and gives the alert no second row", () => {
  const disks = { rule: "disks", kind: "ALERT_KIND_DISK_FREE", subject: "node a" } as const;
  const elsewhere = { ...disks, firedAt: "t" } as const;
  const { fired, left } = withAlerts(SEEN, [
    { rule: "failing", kind: "ALERT_KIND_FAILURES", subject: "deployment ocr", firedAt: "t" },
    { rule: "hooks", kind: "ALERT_KIND_WEBHOOK_OFF", subject: "webhook app of ocr", firedAt: "t" },
    elsewhere,
    // Nothing failed of it in the last hour.
    { rule: "failing", kind: "ALERT_KIND_FAILURES", subject: "deployment tape", firedAt: "t" },
  ]);
  expect(fired).toEqual([
    { keys: ["tasks ocr"], isBad: true, cause: "read: no text (alert failing)" },
    { keys: ["webhook ocr/app"], isBad: true, cause: "no such host (alert hooks)" },
    SEEN[2],
  ]);
  expect(left).toEqual([
    elsewhere,
    { rule: "failing", kind: "ALERT_KIND_FAILURES", subject: "deployment tape", firedAt: "t" },
  ]);
});

it("names each of several alerts that fire for the same", () => {
  const firing = ["failing", "failing-much"].map((rule) => {
    const subject = "deployment ocr";
    return { rule, kind: "ALERT_KIND_FAILURES", subject, firedAt: "t" } as const;
  });
  const { fired, left } = withAlerts(SEEN, firing);
  expect(fired[0]?.cause).toBe("read: no text (alerts failing, failing-much)");
  expect(left).toEqual([]);
});

it("names once a rule whose alerts fire for several things that have one row", () => {
  const together = { keys: ["tasks ocr", "tasks tape"], isBad: false, cause: "no text" };
  const firing = ["ocr", "tape"].map((name) => {
    const subject = `deployment ${name}`;
    return { rule: "failing", kind: "ALERT_KIND_FAILURES", subject, firedAt: "t" } as const;
  });
  expect(withAlerts([together], firing)).toEqual({
    fired: [{ ...together, isBad: true, cause: "no text (alert failing)" }],
    left: [],
  });
});

it("says that an alert is pending, unless one fires, and leaves the concern as bad as it is", () => {
  const about = { kind: "ALERT_KIND_WEBHOOK_OFF", subject: "webhook app of ocr" } as const;
  const pending = { ...about, rule: "hooks" };
  const { fired, left } = withAlerts(SEEN, [pending]);
  expect(fired[1]).toEqual({ ...SEEN[1], cause: "no such host (alert hooks, pending)" });
  expect(left).toEqual([]);
  const both = withAlerts(SEEN, [pending, { ...about, rule: "off", firedAt: "t" }]);
  expect(both.fired[1]).toMatchObject({ isBad: true, cause: "no such host (alert off)" });
});

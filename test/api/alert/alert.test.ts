import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AlertService } from "../../../gen/tessera/v1/alert_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newMember, type Person } from "../../server/rpc/world.ts";
import { newSchema } from "../../storage/postgres/databases.ts";

const alert = AlertService.method;

describe.each(DATABASES)("AlertService on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let operator: Person;
  let member: Person;

  beforeAll(async () => {
    platform = await TestPlatform.start(await open(newSchema()));
    company = await newCompany(platform);
    operator = await newMember(platform, company);
    member = await newMember(platform, company);
    const { userId } = operator;
    await platform.accounts.setOperator({ ...platform.deed(), userId, operator: true });
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  const create = (name: string, { headers }: Person) => {
    const rule = { name, kind: "ALERT_KIND_DISK_FREE" };
    const message = { organization: company.name, rule };
    return platform.call(alert.createAlertRule, message, { headers });
  };
  const update = (rule: object, { updateMask, by }: { updateMask: string; by: Person }) =>
    platform.call(
      alert.updateAlertRule,
      { organization: company.name, rule, updateMask },
      { headers: by.headers },
    );

  it("lets operators alone make and change a rule of the disks of nodes, and others stop it", async () => {
    expect((await create("disk", member)).outcome).toBe("OPERATOR_REQUIRED");
    expect((await create("disk", operator)).outcome).toBe("ok");
    const stopped = { name: "disk", threshold: 50, disabled: true };
    for (const [rule, updateMask] of [
      [{ name: "disk", threshold: 50 }, "threshold"],
      // What a mask leaves out does not count as what is asked.
      [stopped, "threshold"],
      [stopped, "receivers"],
      [stopped, "threshold,disabled"],
      [stopped, "*"],
      [{ name: "disk" }, "disabled"],
    ] as const) {
      const { outcome } = await update(rule, { updateMask, by: member });
      expect(outcome, updateMask).toBe("OPERATOR_REQUIRED");
    }
    const { body } = await update(stopped, { updateMask: "disabled", by: member });
    expect(body).toMatchObject({ disabled: true, threshold: 10 });
    const changed = await update(stopped, { updateMask: "threshold", by: operator });
    expect(changed.body).toMatchObject({ threshold: 50 });
  });
});

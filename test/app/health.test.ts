import { expect, it } from "vitest";
import { Health } from "../../src/app/health.ts";
import { DiskFull, unavailable } from "../../src/storage/unavailable.ts";

function told({ readiness }: Health): string {
  const { hindrance } = readiness;
  return `${readiness.status()} ${hindrance?.reason ?? ""} ${hindrance?.text ?? ""}`;
}

it("names what keeps a node from serving, for as long as that holds", async () => {
  await using resources = new AsyncDisposableStack();
  const health = new Health(resources);
  health.databaseAnswers(true);
  expect(told(health)).toBe("SERVING  ");

  health.databaseRefused(unavailable(new DiskFull("no room")));
  expect(told(health)).toMatch(/^NOT_SERVING STORAGE_UNAVAILABLE the disk .* is full/);
  health.databaseAnswers(false);
  expect(told(health)).toMatch(/^NOT_SERVING STORAGE_UNAVAILABLE the disk .* is full/);
  health.databaseAnswers(true);
  health.databaseAnswers(false);
  expect(told(health)).toMatch(/^NOT_SERVING STORAGE_UNAVAILABLE the database does not answer/);

  health.blobsLack(true);
  health.databaseAnswers(true);
  expect(told(health)).toMatch(/^NOT_SERVING STORAGE_UNAVAILABLE the store of large files/);
  health.blobsLack(false);
  expect(told(health)).toBe("SERVING  ");

  health.machineDrained(true);
  expect(told(health)).toMatch(/^NOT_SERVING NO_WORKER the machine of this node is drained/);
  health.machineDrained(false);
  expect(told(health)).toBe("SERVING  ");

  health.stop();
  health.databaseAnswers(true);
  expect(told(health)).toMatch(/^NOT_SERVING SHUTTING_DOWN/);
});

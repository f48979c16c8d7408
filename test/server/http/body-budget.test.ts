import { expect, it } from "vitest";
import { Problem } from "../../../src/errors.ts";
import { BodyBudget, BodyShare } from "../../../src/server/http/body.ts";

it("a share holds what it is told at most once, and gives all of it back once", () => {
  const budget = new BodyBudget(100);
  const share = new BodyShare(budget);
  for (const bytes of [40, 10, 60, 60]) {
    share.hold(bytes);
  }
  expect(budget.takenBytes).toBe(60);
  share.release();
  share.release();
  share.hold(70);
  expect(budget.takenBytes).toBe(0);
});

it("a share that asks for more than is left is refused, and holds what it had", () => {
  const budget = new BodyBudget(100, 1);
  const [first, second] = [new BodyShare(budget), new BodyShare(budget)];
  first.hold(60);
  second.hold(40);
  const refused = () => second.hold(41);
  expect(refused).toThrow(Problem);
  expect(refused).toThrow("of the 100 ");
  first.release();
  second.hold(41);
  expect(budget.takenBytes).toBe(41);
});

it("one organization holds three quarters at most, and what is of nobody known, too", () => {
  const budget = new BodyBudget(100);
  const shares = ["", "acme", "acme", "umbrella"].map((organizationId) => {
    const share = new BodyShare(budget);
    share.of(organizationId);
    return share;
  });
  const [unknown, first, second, other] = shares as [BodyShare, BodyShare, BodyShare, BodyShare];
  expect(() => unknown.hold(76)).toThrow("at most 75 of the 100");
  first.hold(70);
  expect(() => second.hold(6)).toThrow("the organization has its share");
  other.hold(30);
  for (const share of shares) {
    share.release();
  }
  expect(budget.takenBytes).toBe(0);
});
